package observe

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInstalled(t *testing.T) {
	names := Names{ChainLabel: "penstock.dev/chain", AppliedAnnotation: "penstock.dev/applied", ManagerPrefix: "penstock/"}
	for name, tc := range map[string]struct {
		reason              string
		labels, annotations map[string]string
		owner               string
		want                bool
	}{
		"Nobody":         {"somebody made it by hand", map[string]string{"app": "a"}, map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}, "", false},
		"OtherManager":   {"a tool that installs no extensions", map[string]string{"app.kubernetes.io/managed-by": "argocd"}, nil, "", false},
		"Helm":           {"a release", map[string]string{"app.kubernetes.io/managed-by": "Helm"}, nil, "", true},
		"HelmAnnotation": {"a release", nil, map[string]string{"meta.helm.sh/release-name": "r"}, "", true},
		"OLM":            {"a ClusterServiceVersion", map[string]string{"olm.owner": "operator.v1"}, nil, "", true},
		"OLMPackage":     {"part of an operator", map[string]string{"operators.coreos.com/argocd.operators": ""}, nil, "", true},
		"OLMOwner":       {"owned by a ClusterServiceVersion", nil, nil, "operators.coreos.com/v1alpha1", true},
		"OLMv1":          {"of a ClusterExtension", map[string]string{"olm.operatorframework.io/owner-name": "e"}, nil, "", true},
		"Ours":           {"an export that is imported again", map[string]string{"penstock.dev/chain": "e"}, nil, "", true},
		"OursByContent":  {"its label was stripped", nil, map[string]string{"penstock.dev/applied": "sha256:1"}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}
			if tc.owner != "" {
				live.OwnerReferences = []metav1.OwnerReference{{APIVersion: tc.owner, Kind: "K", Name: "o"}}
			}
			if got := names.Observe(live).Installed; got != tc.want {
				t.Errorf("%s: installed is %t", tc.reason, got)
			}
		})
	}
}
