package upgradereadiness

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// slowRevisions is an empty list that blocks until it is released.
type slowRevisions struct {
	free chan struct{}

	mu      sync.Mutex
	reading map[string]int
}

func (s *slowRevisions) List(ctx context.Context, _ *metainternalversion.ListOptions) (runtime.Object, error) {
	caller, _ := request.UserFrom(ctx)
	s.mu.Lock()
	s.reading[caller.GetName()]++
	s.mu.Unlock()
	<-s.free
	return &olm.ClusterExtensionRevisionList{}, nil
}

func (*slowRevisions) Contents(context.Context, *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	return nil, errors.New("there are no revisions")
}

type everything struct{}

func (everything) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// TestPlaces: a user gets at most half of the places for concurrent answers, and at least one.
// Further requests wait.
func TestPlaces(t *testing.T) {
	table, err := lifecycle.New()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		revisions := &slowRevisions{reading: map[string]int{}, free: make(chan struct{})}
		r := NewREST(Deps{Revisions: revisions, Authorizer: everything{}, Table: table, Current: func(context.Context) *clusterversion.Kubernetes { return nil }})
		ask := func(name string) {
			ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: name})
			go func() {
				if _, err := r.Get(ctx, "1.38", &v1alpha1.UpgradeReadinessOptions{}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}()
			synctest.Wait()
		}
		for range places {
			ask("alice")
		}
		ask("bob")
		ask("bob")
		ask("carol")
		for name, want := range map[string]int{"alice": places / 2, "bob": 1, "carol": 1} {
			if got := revisions.reading[name]; got != want {
				t.Errorf("%d answers are computed for %s, want %d", got, name, want)
			}
		}
		close(revisions.free)
		synctest.Wait()
		if got := revisions.reading; got["alice"] != places || got["bob"] != 2 {
			t.Errorf("not all requests are answered: %v", got)
		}
	})
}
