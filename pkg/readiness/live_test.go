package readiness

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	lamps  = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example.com"},"spec":{"versions":[{"name":"v1"}]}}`
	narrow = `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"one","namespace":"a"},"spec":{"maxUnavailable":0}}`
	wide   = `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"one","namespace":"a"},"spec":{"maxUnavailable":1}}`
	hook   = `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"one"},"webhooks":[{"name":"a.example.com","failurePolicy":"Fail"}]}`
)

// TestLive: the state of objects in the cluster causes findings that their manifests do not.
func TestLive(t *testing.T) {
	id := func(text string) manifest.ID { return object(t, text).ID }
	defines := func(stored string, versions ...DefinedVersion) Live {
		return Live{Definitions: map[manifest.ID]Definition{id(lamps): {Versions: versions, Stored: strings.Fields(stored)}}}
	}
	allows := func(budget Budget) Live { return Live{Budgets: map[manifest.ID]Budget{id(narrow): budget}} }
	old := DefinedVersion{Name: "v1beta1", Served: true}
	gone := DefinedVersion{Name: "v1beta1"}
	deprecated := DefinedVersion{Name: "v1beta1", Served: true, Deprecated: true}
	current := DefinedVersion{Name: "v1", Served: true, Storage: true}
	for _, one := range []struct {
		reason, manifest string
		role             Role
		live             Live
		want             string
	}{
		{"all are stored in the storage version", lamps, RolledOut, defines("v1", old, current), ""},
		{"some may be stored in another one", lamps, RolledOut, defines("v1beta1 v1", old, current), "Look Guess status.storedVersions"},
		{"that is not served any more", lamps, RolledOut, defines("v1beta1 v1", gone, current), "ActBefore Declared status.storedVersions"},
		{"that is deprecated", lamps, RolledOut, defines("v1beta1 v1", deprecated, current), "ActBefore Declared status.storedVersions"},
		{"a proposal drops it", lamps, Proposed, defines("v1beta1 v1", old, current), "ActBefore Certain status.storedVersions"},
		{"a proposal drops another one", lamps, Proposed, defines("v1", old, current), ""},
		{"an earlier revision is refused by the rollback itself", lamps, Earlier, defines("v1beta1 v1", gone, current), ""},
		{"the cluster does not have it", lamps, RolledOut, Live{}, ""},
		{"the manifest alone", narrow, RolledOut, Live{}, "ActBefore Certain spec.maxUnavailable"},
		{"there are no Pods yet", narrow, RolledOut, allows(Budget{}), "ActBefore Certain spec.maxUnavailable"},
		{"both say so", narrow, RolledOut, allows(Budget{Healthy: 1, Desired: 1, Expected: 1}), "ActBefore Certain spec.maxUnavailable"},
		{"somebody has changed it", narrow, RolledOut, allows(Budget{Allowed: 1, Healthy: 2, Desired: 1, Expected: 2}), ""},
		{"replicas that no manifest has", wide, RolledOut, allows(Budget{Healthy: 2, Desired: 2, Expected: 2}), "ActBefore Certain status.disruptionsAllowed"},
		{"a Pod is unhealthy", wide, RolledOut, allows(Budget{Healthy: 1, Desired: 1, Expected: 2}), "Look Guess status.disruptionsAllowed"},
		{"somebody may answer", hook, RolledOut, Live{}, "Look Guess webhooks[0].failurePolicy"},
		{"nobody answers", hook, RolledOut, Live{Webhooks: map[manifest.ID][]Unanswered{id(hook): {{"a.example.com", "a/b"}}}}, "ActBefore Certain webhooks[0].failurePolicy"},
	} {
		t.Run(one.reason, func(t *testing.T) {
			judge := asked(t, "1.36", "1.37")
			judge.Live(one.live)
			judge.Extension(extension(Revision{Name: "one-1", Role: one.role, Objects: []manifest.Object{object(t, one.manifest)}}))
			answer := judge.Answer()
			got := ""
			for _, found := range answer.Findings {
				got += strings.Join([]string{string(found.Severity), string(found.Certainty), found.Field}, " ")
			}
			if got != one.want || answer.Verdict != v1alpha1.UpgradeNothingFound {
				t.Errorf("%q, want %q: %s", got, one.want, answer.Message)
			}
		})
	}
	judge := asked(t, "1.36", "1.37")
	judge.Live(Live{NotLooked: []string{"you cannot list poddisruptionbudgets.policy"}})
	if answer := judge.Answer(); answer.Verdict != v1alpha1.UpgradeUnknown || !strings.Contains(answer.Message, "you cannot list poddisruptionbudgets.policy") {
		t.Errorf("%s: %s", answer.Verdict, answer.Message)
	}
}

// TestOthers: plans and ChartKinds that use kinds which a cluster stops serving cause findings.
func TestOthers(t *testing.T) {
	claim := manifest.Ref{ID: manifest.ID{Group: "resource.k8s.io", Kind: "DeviceClass", Name: "gpu"}, Version: "v1beta1"}
	judge := asked(t, "1.37", "1.38")
	judge.Plan(&Plan{Name: "waits", Role: Proposed, Targets: []manifest.Ref{claim}})
	judge.Plan(&Plan{Name: "runs", Targets: []manifest.Ref{claim, {ID: manifest.ID{Kind: "ConfigMap", Name: "a"}, Version: "v1"}}})
	judge.ChartKind(&ChartKind{Name: "lamps", Inputs: []schema.GroupVersionKind{{Version: "v1", Kind: "Secret"}, claim.GroupVersionKind()}})
	answer := judge.Answer()
	var got []string
	for _, found := range answer.Findings {
		got = append(got, strings.Join([]string{string(found.Severity), found.Plan + found.ChartKind, found.Field, found.Name, found.RemovedIn}, " "))
	}
	want := "Blocks runs apiVersion gpu 1.38, Blocks lamps spec.inputs[1].version  1.38, ActBefore waits apiVersion gpu 1.38"
	if strings.Join(got, ", ") != want || answer.Verdict != v1alpha1.UpgradeBlocked || !strings.HasPrefix(answer.Message, "2 findings to solve") {
		t.Errorf("%v, want %s; %s: %s", got, want, answer.Verdict, answer.Message)
	}
}

// TestStatedIn: a revision keeps the statements of its chart or bundle. Catalogs may no longer have
// them.
func TestStatedIn(t *testing.T) {
	most := clusterversion.OpenShift{Major: 4, Minor: 20}
	for reason, one := range map[string]struct {
		annotations map[string]string
		catalog     Statement
		current     string
		target      string
		verdict     v1alpha1.UpgradeVerdict
		said        bool
	}{
		"a chart with an upper bound":      {map[string]string{v1alpha1.KubeVersionAnnotation: ">=1.25 <1.38"}, Statement{}, "1.37", "1.38", v1alpha1.UpgradeBlocked, true},
		"a chart without one says nothing": {map[string]string{v1alpha1.KubeVersionAnnotation: ">=1.25-0"}, Statement{}, "1.37", "1.38", v1alpha1.UpgradeNothingFound, false},
		"a bundle that no catalog has":     {map[string]string{v1alpha1.MaxOpenShiftAnnotation: `"4.20"`}, Statement{Package: "one"}, "1.33", "4.21", v1alpha1.UpgradeBlocked, true},
		"two properties":                   {map[string]string{v1alpha1.MaxOpenShiftAnnotation: `"4.20","4.21"`}, Statement{Package: "one"}, "1.33", "4.21", v1alpha1.UpgradeUnknown, false},
		"the catalog counts more":          {map[string]string{v1alpha1.MaxOpenShiftAnnotation: `"4.99"`}, Statement{Package: "one", Most: &most}, "1.33", "4.21", v1alpha1.UpgradeBlocked, true},
	} {
		t.Run(reason, func(t *testing.T) {
			said := one.catalog
			said.Or(StatedIn(one.annotations))
			judge := asked(t, one.current, one.target)
			judge.Extension(&Extension{Name: "one", Statement: said})
			answer := judge.Answer()
			if answer.Verdict != one.verdict || strings.Contains(answer.Message, "without a statement") == one.said && answer.Verdict != v1alpha1.UpgradeUnknown {
				t.Errorf("%s: %s", answer.Verdict, answer.Message)
			}
		})
	}
}
