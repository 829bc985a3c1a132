package server

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestCancelWhenDecided(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	tries := 0
	cancelWhenDecided(ctx, func(context.Context) error {
		if tries++; tries < 3 {
			return errors.New("etcd is away")
		}
		return nil
	}, time.Millisecond, cancel)
	if tries != 3 || !errors.Is(context.Cause(ctx), errDecided) {
		t.Errorf("after %d tries: %v", tries, context.Cause(ctx))
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	cancelWhenDecided(ended, func(context.Context) error { return nil }, time.Hour, cancel)
	if errors.Is(context.Cause(ended), errDecided) {
		t.Error("a run that was stopped starts over")
	}
}
