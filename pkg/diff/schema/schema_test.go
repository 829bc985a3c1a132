package schema_test

import (
	"testing"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/diff/difftest"
)

func TestBuiltinKnowsItsGroups(t *testing.T) {
	types := difftest.Builtin(t)
	for _, known := range []runtimeschema.GroupVersionKind{
		{Version: "v1", Kind: "Pod"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
		{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"},
		{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingWebhookConfiguration"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
		{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"},
	} {
		if types.TypeOf(known) == nil {
			t.Errorf("does not know %s", known)
		}
	}
	for _, foreign := range []runtimeschema.GroupVersionKind{
		{Group: "core", Version: "v1", Kind: "Pod"}, {Group: "apps.example.com", Version: "v1", Kind: "Deployment"},
		{Group: "storage.x-k8s.io", Version: "v1", Kind: "StorageClass"}, {Group: "policy.networking.k8s.io", Version: "v1", Kind: "Eviction"},
		{Group: "apps", Version: "v9", Kind: "Deployment"},
	} {
		if types.TypeOf(foreign) != nil {
			t.Errorf("takes %s for one of Kubernetes", foreign)
		}
	}
}
