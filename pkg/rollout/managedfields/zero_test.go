package managedfields

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestYieldingTo: a field that was scaled to zero stays at zero, although it has no manager. Other
// fields without a manager are restored.
func TestYieldingTo(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	wanted := object(t, `{"spec":{"replicas":2,"minReadySeconds":5,"size":{"shards":3},"parts":[{"count":1}]}}`)
	without := managed(manager, apply, `{"f:spec":{"f:minReadySeconds":{},"f:size":{},"f:parts":{}}}`)
	cases := map[string]struct {
		reason, live string
		entries      []metav1.ManagedFieldsEntry
		want         Yields
		may          bool
	}{
		"to zero": {
			reason: "the scale subresource notes nobody for zero", live: `{"spec":{"replicas":0,"minReadySeconds":5,"size":{"shards":3}}}`,
			entries: []metav1.ManagedFieldsEntry{without}, want: Yields{"spec.replicas": zeroScale}, may: true,
		},
		"below": {
			reason: "a kind of a CustomResourceDefinition has its replicas where it says", live: `{"spec":{"replicas":2,"size":{"shards":0}}}`,
			entries: []metav1.ManagedFieldsEntry{managed(manager, apply, `{"f:spec":{"f:replicas":{},"f:minReadySeconds":{},"f:parts":{}}}`)},
			want:    Yields{"spec.size.shards": zeroScale}, may: true,
		},
		"edited": {
			reason: "an edit has a manager, and is drift", live: `{"spec":{"replicas":0}}`,
			entries: []metav1.ManagedFieldsEntry{without, managed("kubectl-edit", update, `{"f:spec":{"f:replicas":{}}}`)},
		},
		"removed": {
			reason: "who removes a field leaves the default", live: `{"spec":{"replicas":1}}`,
			entries: []metav1.ManagedFieldsEntry{without}, may: true,
		},
		"absent": {
			reason: "what the server does not keep is nobody's", live: `{"spec":{}}`,
			entries: []metav1.ManagedFieldsEntry{without}, may: true,
		},
		"ours": {
			reason: "what is ours was not taken", live: `{"spec":{"replicas":0}}`,
			entries: []metav1.ManagedFieldsEntry{managed(manager, apply, `{"f:spec":{"f:replicas":{},"f:minReadySeconds":{},"f:size":{"f:shards":{}},"f:parts":{}}}`)},
		},
		"wiped": {reason: "without our entry, nobody can tell", live: `{"spec":{"replicas":0}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := YieldingTo(wanted, object(t, tc.live), tc.entries, manager, nil); !maps.Equal(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
			if got := MayBeScaledToZero(wanted, tc.entries, manager); got != tc.may {
				t.Errorf("whether the object has to be read: %v", got)
			}
		})
	}
}
