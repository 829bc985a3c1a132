package rollout

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

func reportedDrift(t *testing.T, s *saga) (changed []string) {
	t.Helper()
	guards := []string{"ClusterRole.rbac.authorization.k8s.io reader", "RoleBinding.rbac.authorization.k8s.io a/reader", "NetworkPolicy.networking.k8s.io a/deny",
		"ValidatingWebhookConfiguration.admissionregistration.k8s.io hook", "ConfigMap protected/x"}
	s.place(refOf("Namespace protected"), nil)
	s.alter(refOf("Namespace protected").ID, func(o *thing) { o.set("labels:"+testNames().ProtectLabel, "true", "admin") })
	objects := []string{"ConfigMap a/x=1", "ConfigMap a/gone=1", "ConfigMap a/same=1"}
	for _, guard := range guards {
		objects = append(objects, guard+"=1")
	}
	s.roll(t, s.revision(1).phase("config", objects...))
	s.reportDrift = true
	for _, object := range append([]string{"ConfigMap a/x"}, guards...) {
		s.alter(refOf(object).ID, func(o *thing) { o.set("data:value", "mine", "mallory") })
	}
	s.erase(refOf("ConfigMap a/gone").ID)
	return guards
}

func (s *saga) passes(t *testing.T) Report {
	t.Helper()
	var report Report
	for range 3 {
		s.deliver(len(s.changes))
		var err error
		if report, err = s.pass(); err != nil {
			t.Fatal(err)
		}
	}
	return report
}

// TestDriftIsReported: other writers' changes and deletions are reported and not repaired, except
// for guards (see isGuard). When reporting ends, all are repaired.
func TestDriftIsReported(t *testing.T) {
	s := newSaga()
	guards := reportedDrift(t, s)
	report := s.passes(t)
	var drift []string
	for _, object := range report.Layers[0].Phases[0].Drift {
		drift = append(drift, object.ID.String()+" "+object.Reason+": "+object.Message)
	}
	slices.Sort(drift)
	if len(drift) != 2 || !strings.Contains(drift[0], "a/gone DriftReported: was deleted") || !strings.Contains(drift[1], "a/x DriftReported: ") || !strings.Contains(drift[1], "mallory") {
		t.Errorf("drift is %q", drift)
	}
	if s.content("ConfigMap a/x") != "mine" || s.content("ConfigMap a/gone") != "absent" {
		t.Errorf("it was repaired: %s, %s", s.content("ConfigMap a/x"), s.content("ConfigMap a/gone"))
	}
	for _, guard := range guards {
		if got := s.content(guard); got != "1" {
			t.Errorf("%s says %q", guard, got)
		}
	}
	// A changed object works, and a deleted object is missing.
	if phase := report.Layers[0].Phases[0]; phase.Applied != phase.Objects-1 || len(phase.Failures) != 1 || phase.Failures[0].Name != "gone" {
		t.Errorf("the phase is %+v", phase)
	}
	s.reportDrift = false
	if report := s.passes(t); s.content("ConfigMap a/x") != "1" || s.content("ConfigMap a/gone") != "1" || len(report.Layers[0].Phases[0].Drift) > 0 {
		t.Errorf("afterwards it is %s, %s: %+v", s.content("ConfigMap a/x"), s.content("ConfigMap a/gone"), report.Layers[0])
	}
}

// TestUpgradeWhileDriftIsReported: a new revision applies its changes, and keeps drift of the
// objects that it does not change. The first creation of an object is no drift.
func TestUpgradeWhileDriftIsReported(t *testing.T) {
	s := newSaga()
	s.roll(t, s.revision(1).phase("config", "ConfigMap a/x=1", "ConfigMap a/y=1"))
	s.reportDrift = true
	for _, object := range []string{"ConfigMap a/x", "ConfigMap a/y"} {
		s.alter(refOf(object).ID, func(o *thing) { o.set("data:value", "mine", "alice") })
	}
	s.passes(t)
	s.become(s.revision(2).phase("config", "ConfigMap a/x=2", "ConfigMap a/y=1", "ConfigMap a/z=2"))
	s.passes(t)
	if x, y, z := s.content("ConfigMap a/x"), s.content("ConfigMap a/y"), s.content("ConfigMap a/z"); x != "2" || y != "mine" || z != "2" {
		t.Errorf("x is %s, y is %s, z is %s", x, y, z)
	}
}

// TestGuards: kinds of other groups that control access are guards too.
func TestGuards(t *testing.T) {
	for object, want := range map[string]bool{
		"Role.rbac.authorization.k8s.io a/b": true, "ClusterRoleBinding.rbac.authorization.k8s.io b": true, "MutatingWebhookConfiguration.admissionregistration.k8s.io b": true,
		"ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io b": true, "APIService.apiregistration.k8s.io b": true, "CustomResourceDefinition.apiextensions.k8s.io b": true,
		"ClusterPolicy.kyverno.io b": true, "AuthorizationPolicy.security.istio.io a/b": true, "SecurityContextConstraints.security.openshift.io b": true, "Namespace b": true,
		"K8sRequiredLabels.constraints.gatekeeper.sh b": true, "ConstraintTemplate.templates.gatekeeper.sh b": true, "Config.config.gatekeeper.sh a/b": true,
		"PolicyException.kyverno.io a/b": true, "PeerAuthentication.security.istio.io a/b": true, "Thing.notkyverno.io a/b": false,
		"Deployment.apps a/b": false, "ConfigMap a/b": false, "Service a/b": false, "Secret a/b": false, "HorizontalPodAutoscaler.autoscaling a/b": false,
	} {
		if got := isGuard(refOf(object).ID); got != want {
			t.Errorf("%s: %t", object, got)
		}
	}
	if isGuard(manifest.ID{Kind: "PolicyReport", Group: "wgpolicyk8s.io"}) {
		t.Error("a report is a guard")
	}
}
