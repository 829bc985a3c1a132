package release

import (
	"strings"
	"testing"
)

func TestParseSums(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		content string
		good    bool
	}{
		"two":    {hash + "  a\n" + hash + "  b\n", true},
		"empty":  {"", false},
		"twice":  {hash + "  a\n" + hash + "  a\n", false},
		"above":  {hash + "  ../a\n", false},
		"folder": {hash + "  a/b\n", false},
		"parent": {hash + "  ..\n", false},
		"short":  {"abab  a\n", false},
		"spaces": {hash + " a\n", false},
		"noname": {hash + "  \n", false},
		"long":   {hash + "  a\n" + hash + "  " + strings.Repeat("b", 1<<17) + "\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseSums([]byte(c.content)); (err == nil) != c.good {
				t.Errorf("%q: %v", c.content, err)
			}
		})
	}
}

func TestOfRepository(t *testing.T) {
	const wanted = "https://example.com/a/b"
	for source, want := range map[string]bool{
		"git+https://example.com/a/b@refs/tags/v1, commit 1f":      true,
		"git+https://example.com/a/b.git@refs/tags/v1, commit 1f":  true,
		"https://example.com/a/b, commit 1f":                       true,
		"git+https://example.com/a/b-evil@refs/tags/v1, commit 1f": false,
		"git+https://example.com/a/b/c@refs/tags/v1, commit 1f":    false,
		"git+https://evil.com/https://example.com/a/b@v1, commit":  false,
	} {
		if found := ofRepository(source, wanted); found != want {
			t.Errorf("%s: %t, want %t", source, found, want)
		}
	}
}
