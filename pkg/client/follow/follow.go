// Package follow keeps a list of objects up to date, for screens that show it. It watches, and
// starts over when a watch ends.
package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Source lists and watches objects.
type Source[T metav1.Object] struct {
	// List returns all objects, and the resourceVersion to watch from.
	List func(context.Context, metav1.ListOptions) ([]T, string, error)
	// Watch returns the changes after that resourceVersion.
	Watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	// Options narrow both.
	Options metav1.ListOptions
	// Pause is the pause between two attempts while the server does not answer; 0 means a second.
	Pause time.Duration
	// Trouble is called with the reason while the server does not answer. It may be nil.
	Trouble func(error)
}

// Each calls see with all objects, sorted by name, after each change. It ends when see is done or
// fails, when the context ends, or when the server refuses. A server that does not answer ends it
// only at the beginning.
func (s Source[T]) Each(ctx context.Context, see func([]T) (done bool, err error)) error {
	heard := false
	for {
		done, err := s.once(ctx, func(all []T) (bool, error) {
			heard = true
			return see(all)
		})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case done:
			return err
		case err != nil && (!heard || refused(err)):
			return err
		case err != nil && s.Trouble != nil:
			s.Trouble(err)
		}
		if err == nil {
			continue
		}
		pause := s.Pause
		if pause == 0 {
			pause = time.Second
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// Follow works like Each, and calls trouble with errors that it retries.
func (s Source[T]) Follow(ctx context.Context, trouble func(error), see func([]T) (done bool, err error)) error {
	s.Trouble = trouble
	return s.Each(ctx, see)
}

// Each is a function that calls see with each new state. It ends when see is done or fails, or when
// the context ends. It calls trouble with the reason while it receives nothing.
type Each[T any] func(ctx context.Context, trouble func(error), see func(T) (done bool, err error)) error

// Pair holds the objects of two sources.
type Pair[A, B any] struct {
	First  A
	Second B
}

// Both follows two sources at the same time. It calls see with both states, as soon as both are
// known. It ends when either ends.
func Both[A, B any](first Each[A], second Each[B]) Each[Pair[A, B]] {
	return func(ctx context.Context, trouble func(error), see func(Pair[A, B]) (bool, error)) error {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var mu sync.Mutex
		var pair Pair[A, B]
		known := 0
		look := func(news bool) (bool, error) {
			if news {
				known++
			}
			if known < 2 {
				return false, nil
			}
			return see(pair)
		}
		ended := make(chan error, 2)
		go func() {
			heard := false
			ended <- first(ctx, trouble, func(all A) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				news := !heard
				pair.First, heard = all, true
				return look(news)
			})
		}()
		go func() {
			heard := false
			ended <- second(ctx, trouble, func(all B) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				news := !heard
				pair.Second, heard = all, true
				return look(news)
			})
		}()
		err := <-ended
		stop()
		<-ended // the source must not call see after this returns
		return err
	}
}

// refused is true for answers that a retry does not change.
func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err)
}

func (s Source[T]) once(ctx context.Context, see func([]T) (bool, error)) (done bool, err error) {
	items, version, err := s.List(ctx, s.Options)
	if err != nil {
		return false, err
	}
	known := map[string]T{}
	for _, item := range items {
		known[item.GetName()] = item
	}
	if done, err := see(sorted(known)); done || err != nil {
		return true, err
	}
	options := s.Options
	options.ResourceVersion, options.AllowWatchBookmarks = version, true
	events, err := s.Watch(ctx, options)
	if err != nil {
		return false, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, is := event.Object.(T)
		switch {
		case event.Type == watch.Bookmark:
			continue
		case event.Type == watch.Error:
			return false, apierrors.FromObject(event.Object)
		case !is:
			return false, errors.New("the watch sent an object of another kind")
		case event.Type == watch.Deleted:
			delete(known, object.GetName())
		default:
			known[object.GetName()] = object
		}
		if done, err := see(sorted(known)); done || err != nil {
			return true, err
		}
	}
	return false, nil
}

func sorted[T any](known map[string]T) []T {
	all := make([]T, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[name])
	}
	return all
}
