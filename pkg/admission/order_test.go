package admission

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/server/options"
)

// A change of the order is a decision: it is made here too.
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

// The library refuses to start when a plugin is registered and has no place, or
// the other way round, and we would not notice that it brings a new one.
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
