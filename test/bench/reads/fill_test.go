package reads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/bench/operator"
)

const (
	revisions = "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions"
	// historyChain is an extension with historyLength revisions.
	historyChain  = "veteran"
	historyLength = 100
	writers       = 16
)

// chains returns the number of revisions of each extension. Their sum is the total of the settings.
func (b *bench) chains() map[string]int {
	chains := map[string]int{historyChain: historyLength}
	for left, n := b.settings.revisions-historyLength, 0; left > 0; n++ {
		chains[fmt.Sprintf("operator-%04d", n)] = min(left, b.settings.chainLength)
		left -= b.settings.chainLength
	}
	return chains
}

// named returns the bench's operator with a name.
func (b *bench) named(name string) operator.Operator {
	o := b.operator
	o.Name = name
	return o
}

// fill creates the revisions and waits until the controllers have observed all of them.
func (b *bench) fill() {
	b.t.Helper()
	b.say("creating %d revisions of %d objects", b.settings.revisions, b.operator.Objects)
	began := time.Now()
	b.each(func(ctx context.Context, o operator.Operator, number int) error {
		return b.create(ctx, o, number)
	})
	took := time.Since(began)
	b.say("created %.0f revisions a second", float64(b.settings.revisions)/took.Seconds())
	b.settle()
}

// each calls a function for every revision, in order within a chain.
func (b *bench) each(do func(ctx context.Context, o operator.Operator, number int) error) {
	b.t.Helper()
	group, ctx := errgroup.WithContext(b.t.Context())
	group.SetLimit(writers)
	for name, length := range b.chains() {
		group.Go(func() error {
			for number := range length {
				if err := do(ctx, b.named(name), number+1); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) create(ctx context.Context, o operator.Operator, number int) error {
	revision, err := o.Revision(number)
	if err != nil {
		return err
	}
	body, err := json.Marshal(revision)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", revision.Name, err)
	}
	return b.direct.post(ctx, revisions, body)
}

func (c *client) post(ctx context.Context, path string, body []byte) error {
	for {
		response, err := c.do(ctx, http.MethodPost, path, asJSON, body)
		if err == nil {
			return response.Body.Close()
		}
		if !busy(err) {
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// busy reports whether a server requests a retry.
func busy(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusTooManyRequests
}

func (b *bench) settle() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	for {
		count, behind, err := b.behind(ctx)
		// After a restart the server's cache is not filled at once.
		if err != nil && !busy(err) {
			b.t.Fatal(err)
		}
		if err == nil && behind == 0 && count >= b.settings.revisions {
			return
		}
		b.say("%d revisions, %d not looked at by the controllers yet", count, behind)
		b.pause(time.Second)
	}
}

// behind counts revisions, and revisions whose status is not of their generation. It reads pages:
// the garbage of a full list would distort the memory that is measured next.
func (b *bench) behind(ctx context.Context) (count, behind int, err error) {
	for next := ""; ; {
		var list olmv1alpha1.ClusterExtensionRevisionList
		if err := b.direct.decode(ctx, fmt.Sprintf("%s?limit=%d&continue=%s", revisions, pageSize, next), &list); err != nil {
			return count, behind, err
		}
		for i := range list.Items {
			if list.Items[i].Status.ObservedGeneration != list.Items[i].Generation {
				behind++
			}
		}
		count += len(list.Items)
		if next = list.Continue; next == "" {
			return count, behind, nil
		}
	}
}
