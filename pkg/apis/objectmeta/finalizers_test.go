package objectmeta

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestValidateFinalizers(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		finalizers []string
		want       []string
	}{
		"None":        {reason: "most objects have none"},
		"Standard":    {reason: "those of Kubernetes have no domain", finalizers: []string{"orphan", "foregroundDeletion", "kubernetes"}},
		"Qualified":   {reason: "a domain says whose it is", finalizers: []string{"example.com/held"}},
		"Unqualified": {reason: "anybody's, and so nobody's", finalizers: []string{"example.com/held", "held"}, want: []string{"metadata.finalizers[1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, err := range ValidateFinalizers(tc.finalizers, field.NewPath("metadata", "finalizers")) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
