package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

func asked(ctx context.Context, in io.Reader, person bool) (bool, error) {
	s := screen.New(io.Discard, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourNever, func(string) string { return "" })
	return (&prompt{In: in, Screen: s, Person: person}).confirm(ctx, "Really?")
}

func TestConfirm(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes \n": true, "y": true, "": false, "\n": false, "n\n": false, "yesterday\n": false, "maybe\n": false} {
		if got, err := asked(t.Context(), strings.NewReader(answer), true); err != nil || got != want {
			t.Errorf("%q: %t, %v, want %t", answer, got, err, want)
		}
	}
	if _, err := asked(t.Context(), strings.NewReader("y\n"), false); !errors.Is(err, errNobody) {
		t.Errorf("without a terminal: %v", err)
	}
}

// TestInterrupted: an interruption ends a question without an answer.
func TestInterrupted(t *testing.T) {
	in, feed := io.Pipe()
	defer feed.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := asked(ctx, in, true); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestQuestion(t *testing.T) {
	var out bytes.Buffer
	s := screen.New(&out, func(any) (screen.Size, bool) { return screen.Size{}, false }, screen.ColourNever, func(string) string { return "" })
	if _, err := (&prompt{In: strings.NewReader("n\n"), Screen: s, Person: true}).confirm(t.Context(), "Roll out a\x1b[2J?"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "Roll out a[2J? [y/N] " {
		t.Errorf("%q", out.String())
	}
}
