package chain

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

type listed []metav1.PartialObjectMetadata

func (l listed) Secrets(context.Context, string, string) ([]metav1.PartialObjectMetadata, error) {
	return l, nil
}

// TestClaims: a command for users has the exact form in which they type it. A message with several
// commands does not end with one of them, which would look like the only answer.
func TestClaims(t *testing.T) {
	for name, test := range map[string]struct {
		revision, owner, status, version string
		want                             []string
	}{
		"Nothing newer": {"shop-6", "helm", "deployed", "6", nil},
		"Newer": {"shop-6", "helm", "deployed", "7", []string{
			"Helm has revision 7 of release ns/shop (deployed), and 6 was adopted", "(kubectl penstock adopt helm shop -n ns)",
			"(kubectl annotate --overwrite cer shop-6 penstock.dev/helm-release=ns/shop:7)",
		}},
		"Another name": {"store-6", "helm", "failed", "7", []string{
			"(kubectl penstock adopt helm shop -n ns --extension store)", "(kubectl annotate --overwrite cer store-6 penstock.dev/helm-release=ns/shop:7)",
		}},
		"OLM": {"shop-6", chunked.Owner, "deployed", "7", []string{
			"(kubectl penstock adopt olmv1 shop --undo)", "(kubectl annotate --overwrite cer shop-6 penstock.dev/helm-release=ns/shop:7)",
		}},
		"Uninstalled": {"shop-6", "helm", "uninstalled", "6", []string{"keep the extension: kubectl delete secret -n ns -l owner=helm,name=shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := helm{
				release: helmrelease.Release{Namespace: "ns", Name: "shop", Revision: 6}, revision: test.revision,
				releases: listed{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"owner": test.owner, "status": test.status, "version": test.version}}}},
			}
			got, err := h.Claims(t.Context())
			if err != nil || (got == "") != (test.want == nil) {
				t.Fatalf("%q, %v", got, err)
			}
			for _, part := range test.want {
				if !strings.Contains(got, part) {
					t.Errorf("%q is not in %q", part, got)
				}
			}
		})
	}
}
