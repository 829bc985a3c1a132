package maker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

type store struct {
	Revisions
	who     string
	written *[]string
	refuses error
}

func (s store) Get(context.Context, string) (chain.Head, bool, error) {
	return chain.Head{Highest: 2, Confirmed: true}, true, nil
}

type live struct {
	client.Reader
	now []olmv1alpha1.ClusterExtensionRevision
}

func (l live) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*olmv1alpha1.ClusterExtensionRevisionList).Items = slices.Clone(l.now)
	return nil
}

func (s store) Create(_ context.Context, revision *olmv1alpha1.ClusterExtensionRevision, _ metav1.CreateOptions) (*olmv1alpha1.ClusterExtensionRevision, error) {
	*s.written = append(*s.written, s.who+" creates "+revision.Name+" "+string(revision.Spec.LifecycleState))
	return revision, s.refuses
}

func (s store) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*olmv1alpha1.ClusterExtensionRevision, error) {
	*s.written = append(*s.written, string(patch))
	return &olmv1alpha1.ClusterExtensionRevision{}, s.refuses
}

func (s store) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	*s.written = append(*s.written, s.who+" deletes "+name+" "+*options.Preconditions.ResourceVersion)
	return nil
}

// TestReplace: a proposal is withdrawn only after its replacement exists. Proposals are written as
// their proposer. An outdated pass writes nothing.
func TestReplace(t *testing.T) {
	const active, paused = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStatePaused
	installed, waits := revision("lamp-1", "a", active), revision("lamp-2", "b", paused)
	installed.UID, waits.UID, waits.ResourceVersion, waits.Annotations["proposed"] = "one", "two", "7", "true"
	approved := *waits.DeepCopy()
	approved.Generation++
	forbidden := func(text string) error {
		return apierrors.NewForbidden(olmv1alpha1.Resource("clusterextensionrevisions"), "lamp-3", errors.New(text))
	}
	for name, tc := range map[string]struct {
		approval string
		live     olmv1alpha1.ClusterExtensionRevision
		refuses  error
		want     Reason
		written  string
	}{
		"Active":   {"", waits, nil, Awaited, "alice creates lamp-3 Active, penstock deletes lamp-2 7"},
		"Proposal": {"by hand", waits, nil, Awaited, "penstock creates lamp-3 Paused, penstock deletes lamp-2 7"},
		"Outdated": {"", approved, nil, Outdated, ""},
		"Denied":   {"", waits, forbidden(authz.Refusal + ": alice cannot create configmaps lamp"), Denied, "alice creates lamp-3 Active"},
		"Refused":  {"", waits, forbidden("exceeded quota"), Refused, "alice creates lamp-3 Active"},
		"Invalid":  {"", waits, apierrors.NewBadRequest("no"), Invalid, "alice creates lamp-3 Active"},
		"Unjudged": {"", waits, apierrors.NewInvalid(schema.GroupKind{}, "lamp-3", field.ErrorList{field.InternalError(nil, errors.New("etcd does not answer"))}), Failed, "alice creates lamp-3 Active"},
		"Taken":    {"", waits, apierrors.NewAlreadyExists(olmv1alpha1.Resource("clusterextensionrevisions"), "lamp-3"), Outdated, "alice creates lamp-3 Active"},
		"Failed":   {"", waits, errors.New("no answer"), Failed, "alice creates lamp-3 Active"},
	} {
		t.Run(name, func(t *testing.T) {
			var written []string
			as := func(who string) store { return store{who: who, written: &written, refuses: tc.refuses} }
			c := chainOf(waits, installed)
			c.Store = Store{Live: live{now: []olmv1alpha1.ClusterExtensionRevision{tc.live, installed}}, Heads: store{}, Own: as("penstock"),
				As: func(who user.Info) (Revisions, error) { return as(who.GetName()), nil }}
			identity := Identity{As: &user.DefaultInfo{Name: "alice"}, Approval: tc.approval}
			made, outcome := c.Replace(t.Context(), identity, []source.Phase{{Name: "deploy"}}, func(*olmv1alpha1.ClusterExtensionRevision) {})
			if got := strings.Join(written, ", "); outcome.Reason != tc.want || got != tc.written || (made != nil) != (tc.want == Awaited) {
				t.Errorf("%s, %v: %s", outcome.Reason, outcome.Message, got)
			}
		})
	}
}
