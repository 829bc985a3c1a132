package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyReleaseSigner: an unreadable key is a usage error. hack/release tests the verification.
func TestVerifyReleaseSigner(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nobody":     {nil, "--key"},
		"absent":     {[]string{"--key", file + "x"}, "no such file"},
		"unreadable": {[]string{"--key", file}, "public key"},
	} {
		t.Run(name, func(t *testing.T) {
			root := plugin(t)
			root.SetArgs(append([]string{"verify-release", t.TempDir()}, c.args...))
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: %v, want an error with %q", c.args, err, c.want)
			}
		})
	}
}
