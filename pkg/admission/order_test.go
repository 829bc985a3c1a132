package admission

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/server/options"
)

// TestOrder makes a change of the order a deliberate decision.
func TestOrder(t *testing.T) {
	want := []string{
		"NamespaceLifecycle",
		"MutatingAdmissionPolicy", "MutatingAdmissionWebhook",
		"ValidatingAdmissionPolicy", "InstallLevels", "PlanApproval", "Owners", "ProfileAccess", "Privilege", "ValidatingAdmissionWebhook",
	}
	if diff := cmp.Diff(want, Order()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRegister: the library fails at start if a plugin is registered without a place in the order,
// or has a place and is not registered. The test also detects new plugins of the library.
func TestRegister(t *testing.T) {
	o := options.NewAdmissionOptions()
	theirs := o.RecommendedPluginOrder
	Register(o)
	if errs := o.Validate(); len(errs) > 0 {
		t.Errorf("the options are invalid: %v", errs)
	}
	ours := slices.DeleteFunc(Order(), func(name string) bool {
		return name == "Privilege" || name == "InstallLevels" || name == "PlanApproval" || name == "Owners" || name == "ProfileAccess"
	})
	if diff := cmp.Diff(theirs, ours); diff != "" {
		t.Errorf("the library's own plugins, -theirs, +ours:\n%s", diff)
	}
}
