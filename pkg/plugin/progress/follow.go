package progress

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// beat is how often a picture is drawn anew although nothing has changed: it has the time.
const beat = time.Second

// Following shows objects while they change.
type Following[T metav1.Object] struct {
	Source follow.Source[T]
	Screen *screen.Screen
	Clock  clock.WithTicker
	// Picture of the objects, never empty.
	Picture func([]T) []screen.Line
	// Ended tells whether they need not be followed any more; an error ends it too.
	Ended func([]T) (bool, error)
}

// Run follows until the end or that of the context, whose cause is returned.
func (f Following[T]) Run(ctx context.Context) error {
	seen := make(chan []T)
	ended := make(chan error, 1)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	source := f.Source
	troubles := make(chan error)
	source.Trouble = func(err error) {
		select {
		case troubles <- err:
		case <-inner.Done():
		}
	}
	go func() {
		ended <- source.Each(inner, func(all []T) (bool, error) {
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
