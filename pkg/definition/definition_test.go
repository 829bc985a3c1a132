package definition

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOurs(t *testing.T) {
	ours := map[string]string{"app.kubernetes.io/managed-by": "penstock"}
	by := func(manager, subresource string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource}
	}
	for name, c := range map[string]struct {
		reason  string
		labels  map[string]string
		written []metav1.ManagedFieldsEntry
		want    bool
	}{
		"Ours":        {"nobody else wrote", ours, []metav1.ManagedFieldsEntry{by("penstock", "")}, true},
		"Status":      {"kube-apiserver writes the status", ours, []metav1.ManagedFieldsEntry{by("penstock", ""), by("kube-apiserver", "status")}, true},
		"AppliedOver": {"somebody applied theirs over it", ours, []metav1.ManagedFieldsEntry{by("penstock", ""), by("helm", "")}, false},
		"Theirs":      {"it has no label", nil, []metav1.ManagedFieldsEntry{by("kubectl", "")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Ours(&metav1.ObjectMeta{Labels: c.labels, ManagedFields: c.written}, "penstock"); got != c.want {
				t.Errorf("%s: ours is %v", c.reason, got)
			}
		})
	}
}
