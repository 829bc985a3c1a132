package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/image"
)

func TestTerminal(t *testing.T) {
	const tag = "r.example/a:v1"
	pinned := "r.example/a@sha256:" + strings.Repeat("1", 64)
	refused, broken, outage := &image.Refused{Reason: "x"}, &fbc.Error{Err: errors.New("x")}, errors.New("connection refused")
	for name, c := range map[string]struct {
		reason string
		err    error
		ref    string
		want   bool
	}{
		"RefusedDigest": {"its content never changes", fmt.Errorf("pulling: %w", refused), pinned, true},
		"BrokenDigest":  {"its content never changes", fmt.Errorf("indexing: %w", broken), pinned, true},
		"OutageDigest":  {"the registry may come back", outage, pinned, false},
		"RefusedTag":    {"the tag may be moved", refused, tag, false},
		"BrokenTag":     {"the tag may be moved", broken, tag, false},
		"NoReference":   {"it cannot be asked for", refused, "lamp", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := terminal(c.err, c.ref); got != c.want {
				t.Errorf("%s: terminal is %v", c.reason, got)
			}
		})
	}
}

func TestPause(t *testing.T) {
	for failures, most := range map[int]float64{1: 1.2 * 5, 2: 1.2 * 10, 100: 1.2 * 900} {
		if got := pause(failures).Seconds(); got > most || got < most/1.2 {
			t.Errorf("after %d failures the pause is %v s, want at most %v", failures, got, most)
		}
	}
}
