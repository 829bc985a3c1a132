// Package webhooktest calls webhooks in tests, like kube-apiserver does.
package webhooktest

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
)

// Review returns the request that a webhook gets for a write of an object: a creation if old is
// nil, and an update otherwise.
func Review(t *testing.T, who authenticationv1.UserInfo, object, old *unstructured.Unstructured) webhook.Review {
	t.Helper()
	kind := object.GroupVersionKind()
	r := webhook.Review{Operation: admissionv1.Create, Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName(), User: who}
	var err error
	if r.ObjectJSON, err = object.MarshalJSON(); err != nil {
		t.Fatal(err)
	}
	if old != nil {
		r.Operation = admissionv1.Update
		if r.OldJSON, err = old.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}
