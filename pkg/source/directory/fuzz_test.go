package directory

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzRenderStream: no input panics, lines of errors exist in the input, and repeated reading has
// the same result.
func FuzzRenderStream(f *testing.F) {
	for _, seed := range []string{
		"\r0", configMap("a"), configMap("a") + "---\n" + configMap("a"), "a: [", "a: &a [*a]", "? [a]\n: b", "<<: {a: b}",
		`{"apiVersion":"v1","kind":"List","items":[{"kind":"List","items":[]}]}`, "{}\n{", "--- |\n...\n--- x", "\ufeff", "a: *b", "a: .inf", "a:\n  b: 'c\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		phases, err := RenderStream(context.Background(), strings.NewReader(text), "x", Options{})
		again, errAgain := RenderStream(context.Background(), strings.NewReader(text), "x", Options{})
		if (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Fatalf("read twice: %v, then %v", err, errAgain)
		}
		if diff := cmp.Diff(phases, again); diff != "" {
			t.Fatalf("read twice: %s", diff)
		}
		var all *Errors
		if errors.As(err, &all) {
			// YAML 1.1 has five kinds of line breaks.
			lines := 1 + len(text) - len(strings.NewReplacer("\n", "", "\r", "", "\u0085", "\x00", "\u2028", "\x00\x00", "\u2029", "\x00\x00").Replace(text))
			for _, one := range all.List {
				if one.Line < 0 || one.Line > lines {
					t.Errorf("%v: the input has %d lines", one, lines)
				}
			}
		}
	})
}
