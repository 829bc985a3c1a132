package progress

import (
	"context"
	"errors"
	"time"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// beat is the interval of redrawing an unchanged picture, because it shows the elapsed time.
const beat = time.Second

// Following shows a state while it changes.
type Following[T any] struct {
	// Each calls see with each new state, until see is done or fails, or the context ends. It calls
	// trouble with the reason while it receives nothing.
	Each   func(ctx context.Context, trouble func(error), see func(T) (done bool, err error)) error
	Screen *screen.Screen
	Clock  clock.WithTicker
	// Picture returns the lines of a state; it is never empty.
	Picture func(T) []screen.Line
	// Ended reports whether to stop following; an error stops it, too.
	Ended func(T) (bool, error)
}

// Run follows until Ended, or until the context ends; then it returns the context's cause.
func (f Following[T]) Run(ctx context.Context) error {
	seen := make(chan T)
	ended := make(chan error, 1)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	troubles := make(chan error)
	trouble := func(err error) {
		select {
		case troubles <- err:
		case <-inner.Done():
		}
	}
	go func() {
		ended <- f.Each(inner, trouble, func(all T) (bool, error) {
			select {
			case seen <- all:
				return f.Ended(all)
			case <-inner.Done():
				return true, inner.Err()
			}
		})
	}()
	view := NewView(f.Screen, f.Clock.Now())
	ticker := f.Clock.NewTicker(beat)
	defer ticker.Stop()
	var lines []screen.Line
	for {
		select {
		case all := <-seen:
			lines = f.Picture(all)
			view.Show(lines, f.Clock.Now())
		case trouble := <-troubles:
			view.Show(append(lines[:len(lines):len(lines)], screen.Line{Glyph: screen.Notice, Style: screen.Yellow, Text: "the server does not answer: " + trouble.Error(), Keep: true}), f.Clock.Now())
		case <-ticker.C():
			if len(lines) > 0 {
				view.Beat(lines, f.Clock.Now())
			}
		case err := <-ended:
			if cause := context.Cause(ctx); cause != nil && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
				return cause
			}
			return err
		}
	}
}
