package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/authz"
)

// everything returns the findings on a current host for a process with all rights.
func everything() findings {
	found := findings{served: map[schema.GroupVersionResource]bool{}, allowed: map[authz.Right]bool{}}
	for _, right := range delegated() {
		found.allowed[right] = true
	}
	for _, f := range Features() {
		for _, resource := range f.Lists {
			found.served[resource] = true
		}
		for _, right := range f.rights() {
			found.allowed[right] = true
		}
	}
	return found
}

func TestDecide(t *testing.T) {
	admission := schema.GroupVersion{Group: "admissionregistration.k8s.io", Version: "v1"}
	flow := schema.GroupVersion{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}
	cases := map[string]struct {
		reason   string
		disabled []string
		host     func(findings)
		want     []Off
		err      []string
	}{
		"Everything": {
			reason: "a current host, all rights: nothing is off",
			host:   func(findings) {},
		},
		"OlderHost": {
			reason: "a host before 1.36 has no MutatingAdmissionPolicy: there is nothing to enforce",
			host: func(f findings) {
				delete(f.served, admission.WithResource("mutatingadmissionpolicies"))
				delete(f.served, admission.WithResource("mutatingadmissionpolicybindings"))
			},
			want: []Off{{"MutatingAdmissionPolicy", "the host does not serve " +
				"admissionregistration.k8s.io/v1 mutatingadmissionpolicies, admissionregistration.k8s.io/v1 mutatingadmissionpolicybindings"}},
		},
		"PolicyForbidden": {
			reason: "somebody's policies exist and cannot be read: fail closed, and say all that is missing",
			host: func(f findings) {
				delete(f.allowed, authz.On(admission.WithResource("validatingadmissionpolicybindings"), "watch", "", ""))
				delete(f.allowed, authz.On(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, "list", "", ""))
			},
			err: []string{
				"list namespaces (for admission plugin NamespaceLifecycle)",
				"watch validatingadmissionpolicybindings.admissionregistration.k8s.io (for admission plugin ValidatingAdmissionPolicy)",
				"--disable-admission-plugins",
			},
		},
		"ForbiddenButDisabled": {
			reason:   "a person decided to go without",
			disabled: []string{"ValidatingAdmissionPolicy"},
			host: func(f findings) {
				delete(f.allowed, authz.On(admission.WithResource("validatingadmissionpolicybindings"), "watch", "", ""))
			},
		},
		"RolesForbidden": {
			reason: "what a binding grants could not be told",
			host: func(f findings) {
				rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
				delete(f.allowed, authz.On(rbac.WithResource("clusterroles"), "get", "", ""))
			},
			err: []string{"get clusterroles.rbac.authorization.k8s.io (for admission plugin Privilege)"},
		},
		"FlowControlForbidden": {
			reason: "priority and fairness protects only us: without the right there are plain limits",
			host: func(f findings) {
				delete(f.allowed, authz.On(flow.WithResource("flowschemas"), "list", "", ""))
			},
			want: []Off{{PriorityAndFairness, "the right is missing to list flowschemas.flowcontrol.apiserver.k8s.io"}},
		},
		"NoDelegation": {
			reason: "without access reviews every request would be refused, so do not start",
			host: func(f findings) {
				for _, right := range delegated() {
					delete(f.allowed, right)
				}
			},
			err: []string{"create tokenreviews.authentication.k8s.io", "create subjectaccessreviews.authorization.k8s.io",
				"watch configmaps kube-system/extension-apiserver-authentication"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			found := everything()
			tc.host(found)
			got, err := decide(Features(), tc.disabled, found)
			if (err != nil) != (len(tc.err) > 0) {
				t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.err)
			}
			for _, want := range tc.err {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error does not say %q:\n%v", tc.reason, want, err)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(Off{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
