package signer

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func by(signers ...string) string {
	return (&Record{Policy: "sha256:1f", Rule: "docker registry.example.com", Signers: signers, Time: time.Unix(1, 0).UTC()}).String()
}

func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          string
	}{
		"same":           {before: by("key a"), after: by("key a")},
		"another":        {before: by("key a"), after: by("key b"), want: "image: signed by key b, was signed by key a"},
		"one more":       {before: by("key a"), after: by("key a", "key b")},
		"one less":       {before: by("key a", "key b"), after: by("key a"), want: "image: signed by key a, was signed by key a, key b"},
		"no signature":   {before: by("key a"), after: by(), want: "image: no signature was verified, was signed by key a"},
		"nothing said":   {before: by("key a"), want: "image: no signature was verified, was signed by key a"},
		"unreadable":     {before: by("key a"), after: "{", want: "image: no signature was verified, was signed by key a"},
		"first":          {after: by("key a")},
		"unsigned, then": {before: by(), after: by("key a")},
		"not readable":   {before: "{", after: by("key a")},
	} {
		t.Run(name, func(t *testing.T) {
			if found := Lost(c.before, c.after); found != c.want {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func TestString(t *testing.T) {
	r := &Record{Policy: "sha256:1f", Rule: "default", Signers: []string{"key a"}, Time: time.Unix(1, 0).UTC()}
	if diff := cmp.Diff(r, Parse(r.String())); diff != "" {
		t.Error(diff)
	}
	if found := (*Record)(nil).String(); found != "" || Parse(found) != nil {
		t.Errorf("no record is %q", found)
	}
}
