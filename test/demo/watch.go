package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	patience = 3 * time.Minute
	// again is the pause before a broken watch is opened again.
	again = 100 * time.Millisecond
)

// lister lists and watches one resource. All typed clients have both methods, but List returns a
// different type in each.
type lister[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// follow calls see for every state of one object, or of all objects that a field selector matches,
// until see returns true. While the server is unreachable it retries, as long as alive returns nil.
// Its error names the claim that it waited for.
func follow[T runtime.Object, L runtime.Object](
	ctx context.Context, resource lister[L], selector fields.Selector, alive func() error, items func(L) []T, see func(T) bool,
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	for {
		done, err := followOnce(ctx, resource, selector, items, see)
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if gone := alive(); gone != nil {
			return errors.Join(gone, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(again):
		}
	}
}

// followOnce lists and then watches, until the watch ends.
func followOnce[T runtime.Object, L runtime.Object](
	ctx context.Context, resource lister[L], selector fields.Selector, items func(L) []T, see func(T) bool,
) (bool, error) {
	options := metav1.ListOptions{FieldSelector: selector.String()}
	list, err := resource.List(ctx, options)
	if err != nil {
		return false, err
	}
	for _, item := range items(list) {
		if see(item) {
			return true, nil
		}
	}
	listed, err := meta.ListAccessor(list)
	if err != nil {
		return false, err
	}
	options.ResourceVersion = listed.GetResourceVersion()
	watching, err := resource.Watch(ctx, options)
	if err != nil {
		return false, err
	}
	defer watching.Stop()
	for event := range watching.ResultChan() {
		if item, ok := event.Object.(T); ok && event.Type != watch.Deleted && see(item) {
			return true, nil
		}
	}
	return false, nil
}

// named selects one object.
func named(name string) fields.Selector {
	return fields.OneTermEqualSelector(metav1.ObjectNameField, name)
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}
