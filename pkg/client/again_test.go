package client

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMayPass(t *testing.T) {
	resource := schema.GroupResource{Resource: "revisionhistories"}
	later := apierrors.NewConflict(resource, "argocd", errors.New("the manifests were collected"))
	later.ErrStatus.Details.RetryAfterSeconds = 1
	for want, errs := range map[bool][]error{
		true:  {later, apierrors.NewServiceUnavailable("starting"), apierrors.NewTooManyRequests("busy", 0), apierrors.NewServerTimeout(resource, "post", 0)},
		false: {apierrors.NewConflict(resource, "argocd", errors.New("the store has it")), apierrors.NewForbidden(resource, "argocd", nil), errors.New("away")},
	} {
		for _, err := range errs {
			if got := MayPass(err); got != want {
				t.Errorf("MayPass(%v) = %t, want %t", err, got, want)
			}
		}
	}
}
