package catalog

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// revision returns a revision of a package's version.
func revision(number int64, name, version string, succeeded bool) olm.ClusterExtensionRevision {
	out := olm.ClusterExtensionRevision{Spec: olm.ClusterExtensionRevisionSpec{Revision: number}}
	out.Annotations = map[string]string{v1alpha1.PackageAnnotation: name, v1alpha1.VersionAnnotation: version}
	if succeeded {
		out.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}}
	}
	return out
}

func leaving(one olm.ClusterExtensionRevision) olm.ClusterExtensionRevision {
	now := metav1.Now()
	one.DeletionTimestamp = &now
	return one
}

func archived(one olm.ClusterExtensionRevision) olm.ClusterExtensionRevision {
	one.Spec.LifecycleState = olm.LifecycleStateArchived
	return one
}

func TestInstalled(t *testing.T) {
	got := installed(map[string][]olm.ClusterExtensionRevision{
		"b":       {revision(1, "lamp", "1.0.0", true), revision(3, "lamp", "3.0.0", false), revision(2, "lamp", "2.0.0", true)},
		"a":       {revision(1, "lamp", "1.0.0\x1b[2J", true)},
		"new":     {revision(1, "rope", "1.0.0", false)},
		"leaving": {revision(1, "axe", "1.0.0", true), leaving(revision(2, "axe", "2.0.0", true))},
		"gone":    {archived(revision(1, "saw", "1.0.0", true)), archived(revision(2, "saw", "2.0.0", true))},
		"stuck":   {archived(revision(1, "awl", "1.0.0", true)), revision(2, "awl", "2.0.0", true), revision(3, "awl", "3.0.0", false)},
		"other":   {revision(1, "", "1.0.0", true)},
		"empty":   nil,
	})
	want := map[string][]catalogv1alpha1.InstalledVersion{
		"lamp": {{Extension: "a", Version: "1.0.0[2J"}, {Extension: "b", Version: "2.0.0"}},
		"awl":  {{Extension: "stuck", Version: "2.0.0"}},
		"axe":  {{Extension: "leaving", Version: "1.0.0"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestInstalledBy: only users with the right to list revisions see installed versions. For other
// users the revisions are not read.
func TestInstalledBy(t *testing.T) {
	for name, c := range map[string]struct {
		decision   authorizer.Decision
		err        error
		told, asks bool
	}{
		"may":       {decision: authorizer.DecisionAllow, told: true, asks: true},
		"cannot":    {decision: authorizer.DecisionNoOpinion},
		"denied":    {decision: authorizer.DecisionDeny},
		"no answer": {decision: authorizer.DecisionNoOpinion, err: errors.New("no answer")},
	} {
		t.Run(name, func(t *testing.T) {
			asked := false
			revisions := func(context.Context) (map[string][]olm.ClusterExtensionRevision, error) {
				asked = true
				return map[string][]olm.ClusterExtensionRevision{"lamp": {revision(1, "lamp", "1.0.0", true)}}, nil
			}
			by := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if a.GetVerb() != "list" || a.GetResource() != "clusterextensionrevisions" || a.GetAPIGroup() != "olm.operatorframework.io" || a.GetUser().GetName() != "alice" {
					t.Errorf("asked for %+v", a)
				}
				return c.decision, "", c.err
			})
			ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "alice"})
			found, err := InstalledBy(revisions, by)(ctx)
			if (found != nil) != c.told || asked != c.asks || (err != nil) != (c.err != nil) {
				t.Errorf("told %v, looked %t, error %v", found, asked, err)
			}
		})
	}
	if _, err := InstalledBy(nil, nil)(t.Context()); err == nil {
		t.Error("a request without a user is told something")
	}
}
