package initializers

import (
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/manifest/loader"
)

// TestAcceptLists: a file may have a list of policies of the list kind. Each policy gets its
// defaults.
func TestAcceptLists(t *testing.T) {
	taken := accept(func(p *admissionregistrationv1.ValidatingAdmissionPolicy) {
		setDefaults(&p.Spec.FailurePolicy, &p.Spec.MatchConstraints)
	})
	read := func(text string) ([]*admissionregistrationv1.ValidatingAdmissionPolicy, error) {
		t.Helper()
		object, _, err := decoder().Decode([]byte(text), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return taken(object)
	}
	const head = "apiVersion: admissionregistration.k8s.io/v1\nkind: "
	policies, err := read(head + "ValidatingAdmissionPolicyList\nitems: [{metadata: {name: a}}, {metadata: {name: b}, spec: {failurePolicy: Ignore}}]")
	if err != nil || len(policies) != 2 || policies[0].Name != "a" || *policies[0].Spec.FailurePolicy != admissionregistrationv1.Fail || *policies[1].Spec.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("found %v, %v", policies, err)
	}
	if policies, err := read(head + "ValidatingAdmissionPolicy\nmetadata: {name: a}"); err != nil || len(policies) != 1 {
		t.Errorf("found %v, %v", policies, err)
	}
	for _, kind := range []string{"MutatingAdmissionPolicyList\nitems: [{metadata: {name: a}}]", "MutatingAdmissionPolicy\nmetadata: {name: a}"} {
		if _, err := read(head + kind); !errors.Is(err, loader.ErrUnrecognizedType) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
