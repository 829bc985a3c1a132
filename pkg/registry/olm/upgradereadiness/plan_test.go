package upgradereadiness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/readiness"
)

// TestFill: a package is rendered once, for all who ask; one that takes longer than a request goes on.
func TestFill(t *testing.T) {
	now := time.Unix(0, 0)
	go1, asked := make(chan struct{}), make(chan Wanted, 10)
	r := &rendered{known: map[Wanted]*result{}, now: func() time.Time { return now }, render: func(ctx context.Context, _ string, wanted Wanted) (readiness.Contents, error) {
		asked <- wanted
		switch wanted.Image {
		case "slow@1":
			<-go1
		case "broken@1":
			return readiness.Contents{}, errors.New("no such image")
		}
		return readiness.Contents{Range: wanted.Namespace}, ctx.Err()
	}}
	target, err := readiness.ParseTarget("1.38")
	if err != nil {
		t.Fatal(err)
	}
	fill := func(ctx context.Context, image string) (readiness.Candidate, int) {
		one := &readiness.Extension{Name: "one", Revisions: []readiness.Revision{{}}, Statement: readiness.Statement{Next: []readiness.Candidate{{Image: image}}}}
		hidden := &readiness.Extension{Name: "hidden", Statement: readiness.Statement{Next: []readiness.Candidate{{Image: "hidden"}}}}
		pending := r.fill(ctx, "alice", target, []*readiness.Extension{one, hidden}, map[string]Settings{"one": {Namespace: "lamps"}})
		return one.Statement.Next[0], pending
	}
	for range 2 {
		if got, pending := fill(t.Context(), "good@1"); !got.Rendered || got.Contents.Range != "lamps" || pending != 0 {
			t.Errorf("%+v, %d pending", got, pending)
		}
	}
	if len(asked) != 1 {
		t.Errorf("it was rendered %d times", len(asked))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if got, pending := fill(ended, "slow@1"); got.Rendered || pending != 1 {
		t.Errorf("%+v, %d pending", got, pending)
	}
	close(go1)
	if got, pending := fill(t.Context(), "slow@1"); !got.Rendered || got.Contents.NotLooked != "" || pending != 0 {
		t.Errorf("the request that began it has ended: %+v, %d pending", got, pending)
	}
	for _, wait := range []time.Duration{0, failureKept - 1, failureKept} {
		before := len(asked)
		now = now.Add(wait)
		got, _ := fill(t.Context(), "broken@1")
		if again := len(asked) > before; !got.Rendered || got.Contents.NotLooked != "no such image" || again != (before < 3 || wait == failureKept) {
			t.Errorf("after %s: %+v, again %t", wait, got, again)
		}
		now = time.Unix(0, 0)
	}
	for len(asked) > 0 {
		if wanted := <-asked; wanted.Image == "hidden" || wanted.Extension != "one" || wanted.Kubernetes != "1.38.0" {
			t.Errorf("%+v", wanted)
		}
	}
}
