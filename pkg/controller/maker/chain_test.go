package maker

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// TestHoldBy: only the hold of the newest rollback counts, also before it is confirmed. A rollback
// that was never written holds nothing.
func TestHoldBy(t *testing.T) {
	rollback := &olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "lamp-5", UID: "five"}}
	older, newer := &chain.Hold{Revision: 3, UID: "three", OwnerGeneration: 2}, &chain.Hold{Revision: 5, UID: "five", OwnerGeneration: 7}
	for name, tc := range map[string]struct {
		head chain.Head
		want *chain.Hold
	}{
		"None":         {},
		"Counts":       {chain.Head{Hold: newer}, newer},
		"Pending":      {chain.Head{PendingHold: newer}, newer},
		"AfterAnother": {chain.Head{Hold: older, PendingHold: newer}, newer},
		"NeverWritten": {chain.Head{PendingHold: &chain.Hold{Revision: 6, UID: "six"}}, nil},
	} {
		if got := holdBy(tc.head, rollback); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	if said := held("lamp", "lamp-5", 0); strings.Contains(said, "generation") ||
		!strings.HasSuffix(said, ": kubectl penstock resume lamp, or kubectl annotate cer lamp-5 "+olmv1alpha1.ReleaseHoldAnnotation+"=lamp-5") {
		t.Errorf("a hold that ends by release alone says %q", said)
	}
}

// TestRights: a user who cannot write a revision gets that reason for every kind of write.
func TestRights(t *testing.T) {
	for text, want := range map[string]bool{
		`clusterextensionrevisions.olm.operatorframework.io "lamp-1" is forbidden: User "alice" cannot create resource "clusterextensionrevisions"`: true,
		`clusterextensionrevisions.olm.operatorframework.io "lamp-1" is forbidden: User "alice" cannot patch resource "clusterextensionrevisions"`:  true,
		"a revision may only do what its requester may do: alice cannot create configmaps":                                                          true,
		"exceeded quota: requested: count/clusterextensionrevisions=1":                                                                              false,
	} {
		if got := isRightsRefusal(errors.New(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}
