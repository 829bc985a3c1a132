package chain

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
	store "github.com/penstock-project/penstock/pkg/store/chain"
)

type seen map[string]Owner

func (s seen) Follow(chain string, _ metav1.OwnerReference) (Owner, bool) {
	owner, ok := s[chain]
	return owner, ok
}

func (s seen) Unfollow(chain string) { delete(s, chain) }

func extension() metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: "argocd", UID: "owner", Controller: &yes}
}

func owned(r *olmv1alpha1.ClusterExtensionRevision) {
	r.OwnerReferences = []metav1.OwnerReference{extension()}
}

func TestHold(t *testing.T) {
	release := func(value string) func(*olmv1alpha1.ClusterExtensionRevision) {
		return annotated(olmv1alpha1.ReleaseHoldAnnotation, value)
	}
	const (
		above = "argocd-3 is a rollback: ClusterExtension argocd makes no revision until its generation is above 7, or until the hold is released (kubectl penstock resume argocd): kubectl annotate cer argocd-4 penstock.dev/release-hold=argocd-3"
		ever  = "argocd-3 is a rollback: ClusterExtension argocd makes no revision until the hold is released (kubectl penstock resume argocd): kubectl annotate cer argocd-4 penstock.dev/release-hold=argocd-3"
	)
	cases := map[string]struct {
		reason string
		newest *olmv1alpha1.ClusterExtensionRevision
		hold   *store.Hold
		owner  *Owner
		want   string
		left   bool
	}{
		"held":        {"its generation is the same", numbered(4, owned), &store.Hold{Revision: 3, UID: uidOf(3), OwnerGeneration: 7}, &Owner{"owner", 7}, "True/IsRollback " + above, true},
		"newer":       {"it was changed since", numbered(4, owned), &store.Hold{Revision: 3, UID: uidOf(3), OwnerGeneration: 7}, &Owner{"owner", 8}, "False/Released ClusterExtension argocd has generation 8", false},
		"not seen":    {"a missing answer is no newer generation", numbered(4, owned), &store.Hold{Revision: 3, UID: uidOf(3), OwnerGeneration: 7}, nil, "True/IsRollback " + above, true},
		"unknown":     {"0 binds until it is released", numbered(4, owned), &store.Hold{Revision: 3, UID: uidOf(3)}, &Owner{"owner", 8}, "True/IsRollback " + ever, true},
		"another one": {"who has the name now was never held", numbered(4, owned), &store.Hold{Revision: 3, UID: uidOf(3), OwnerGeneration: 7}, &Owner{"other", 1}, "False/Released ClusterExtension argocd now has another uid", false},
		"released":    {"by hand", numbered(4, owned, release("argocd-3")), &store.Hold{Revision: 3, UID: uidOf(3), OwnerGeneration: 7}, &Owner{"owner", 7}, "False/Released released by the annotation on argocd-4", false},
		"another":     {"the release of an earlier hold", numbered(4, owned, release("argocd-2")), &store.Hold{Revision: 3, UID: uidOf(3), OwnerGeneration: 7}, &Owner{"owner", 7}, "True/IsRollback " + above, true},
		"no hold":     {"nothing to tell", numbered(4, owned), nil, nil, "", false},
		"no owner":    {"nobody is held", numbered(4), nil, nil, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := set(t, tc.newest, numbered(3, owned, is(olmv1alpha1.ConditionHeld)))
			if name == "no owner" {
				s = set(t, tc.newest, numbered(3))
			}
			owners := seen{}
			if tc.owner != nil {
				owners["argocd"] = *tc.owner
			}
			s.Owners, s.heads.head.Hold = owners, tc.hold
			// A hold that ends was reported before.
			if strings.HasPrefix(tc.want, "False") {
				is(olmv1alpha1.ConditionHeld)(&s.revisions[0])
			}
			for range 2 { // the second pass changes nothing
				if err := s.hold(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := s.writeStatus(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			if c := meta.FindStatusCondition(s.stored(t, 4).Status.Conditions, olmv1alpha1.ConditionHeld); c != nil {
				got = string(c.Status) + "/" + c.Reason + " " + c.Message
				if c.Status == metav1.ConditionTrue {
					taken(t, *c, olmv1alpha1.ReleaseHoldAnnotation, "argocd-3")
				}
			}
			if got != tc.want {
				t.Errorf("%s: Held is %q, want %q", tc.reason, got, tc.want)
			}
			if left := s.heads.head.Hold != nil; left != tc.left {
				t.Errorf("%s: the head holds: %t, want %t", tc.reason, left, tc.left)
			}
			if name != "no owner" && meta.FindStatusCondition(s.stored(t, 3).Status.Conditions, olmv1alpha1.ConditionHeld) != nil {
				t.Error("a revision that is not the newest tells of a hold")
			}
		})
	}
}

func TestOwnerWatch(t *testing.T) {
	extensions := schema.GroupVersionResource{Group: "olm.operatorframework.io", Version: "v1", Resource: "clusterextensions"}
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	object := func(name string, generation int64) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension"},
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), Generation: generation},
		}
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, object("argocd", 3), object("flux", 9))
	told := make(chan string, 100)
	watch := NewOwnerWatch(t.Context(), client, func(chain string) { told <- chain })
	until := func(want Owner) {
		t.Helper()
		late := time.After(time.Minute)
		for {
			if got, ok := watch.Follow("argocd", extension()); ok && got == want {
				return
			}
			select {
			case chain := <-told:
				if chain != "argocd" {
					t.Errorf("told of extension %s", chain)
				}
			case <-late:
				t.Fatalf("nobody told of %+v", want)
			}
		}
	}
	until(Owner{UID: "uid-of-argocd", Generation: 3})
	if err := client.Tracker().Update(extensions, object("argocd", 4), ""); err != nil {
		t.Fatal(err)
	}
	until(Owner{UID: "uid-of-argocd", Generation: 4})
	watch.Unfollow("argocd")
	if len(watch.owners) != 0 {
		t.Error("an owner is followed whom nobody holds")
	}
	other := extension()
	other.Kind = "Subscription"
	if got, ok := watch.Follow("argocd", other); ok {
		t.Errorf("of an owner of another kind %+v was seen", got)
	}
}

// TestHoldAsksWhole: status has the whole release command, also if names are long.
func TestHoldAsksWhole(t *testing.T) {
	chain := strings.Repeat("c", 60)
	r := numbered(4, func(r *olmv1alpha1.ClusterExtensionRevision) { r.Name = chain + "-4" })
	owner := metav1.OwnerReference{Kind: strings.Repeat("K", 63), Name: strings.Repeat("o", 253)}
	held := ownerHold{hold: &store.Hold{Revision: 3, OwnerGeneration: 7}, owner: owner}
	got := meta.FindStatusCondition(status(r, finding{newest: true, layer: &rollout.LayerReport{}, chainHeld: held}, noon).Conditions, olmv1alpha1.ConditionHeld)
	if len(got.Message) > olmv1alpha1.MaxMessageLength {
		t.Errorf("a message of %d bytes", len(got.Message))
	}
	taken(t, *got, olmv1alpha1.ReleaseHoldAnnotation, chain+"-3")
}
