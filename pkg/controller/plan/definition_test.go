package plan

import (
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/rollout"
)

type labIdentities struct{ *lab }

func (i labIdentities) Engine(v1alpha1.ProfileName) (*rollout.Engine, error) {
	return i.loop.Options.Engine, nil
}

func (i labIdentities) Facts(_ v1alpha1.ProfileName, definitions ...*cel.Profile) (map[string]Facts, error) {
	facts := map[string]Facts{}
	for _, one := range definitions {
		facts[one.Digest()] = i.cluster
	}
	return facts, nil
}

func (l *lab) definition(name string, into *v1alpha1.ConfigurationProfileDefinition) error {
	found := l.definitions[name]
	if found == nil {
		return apierrors.NewNotFound(v1alpha1.Resource("configurationprofiledefinitions"), name)
	}
	found.DeepCopyInto(into)
	return nil
}

const ownName = "load-aware-rebalancing"

// define stores a changed copy of the shipped definition.
func (l *lab) define(change func(spec *v1alpha1.ConfigurationProfileDefinitionSpec)) {
	l.t.Helper()
	l.defineAs(ownName, change)
}

// defineAs stores a changed copy of the shipped definition with this name.
func (l *lab) defineAs(name string, change func(spec *v1alpha1.ConfigurationProfileDefinitionSpec)) {
	l.t.Helper()
	raw, err := os.ReadFile("../../../artifacts/examples/profiles/" + name + ".yaml")
	l.must(err)
	definition := &v1alpha1.ConfigurationProfileDefinition{}
	l.must(yaml.UnmarshalStrict(raw, definition))
	v1alpha1.SetObjectDefaults_ConfigurationProfileDefinition(definition)
	if change != nil {
		change(&definition.Spec)
	}
	definition.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccessGranted, Status: metav1.ConditionTrue}}
	l.definitions = map[string]*v1alpha1.ConfigurationProfileDefinition{name: definition}
}

func ofDefinition(values string) spec {
	return func(p *hco.ConfigurationPlan) {
		p.Spec.Profile = ownName
		p.Spec.Options = &hco.PlanOptions{Values: &hco.JSONObject{Raw: []byte(values)}}
	}
}

// waitsFor makes the item of the descheduler wait for an expression.
func waitsFor(expression string) func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
	return func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
		i := slices.IndexFunc(spec.Items, func(item v1alpha1.DefinitionItem) bool { return item.Name == "configure-descheduler" })
		spec.Items[i].Waits = []v1alpha1.DefinitionWait{{Expression: expression, Message: "the descheduler has to look"}}
	}
}

// TestDefinition: a plan of a user-defined profile is computed, approved and executed from the
// definition at the time of computation, also its waits. An edit does not change the plan until it
// is computed again.
func TestDefinition(t *testing.T) {
	l := newStore(t).newLab(t).usual()
	l.must(l.create("own", ofDefinition(`{"enablePSIMetrics": false}`), take))
	l.is("own", v1alpha1.PhasePrerequisiteFailed, "there is no ConfigurationProfileDefinition "+ownName)
	l.define(waitsFor("live.status.looked == true"))
	granted := l.definitions[ownName].Status.Conditions
	l.definitions[ownName].Status.Conditions = nil
	l.is("own", v1alpha1.PhasePrerequisiteFailed, "does not yet have the rights")
	l.definitions[ownName].Status.Conditions = granted
	planned := l.is("own", v1alpha1.PhaseReviewRequired)
	if len(planned.Status.Items) != 1 || planned.Status.Definition == nil || planned.Status.Definition.Digest != cel.Digest(&l.definitions[ownName].Spec) {
		t.Fatalf("%+v", planned.Status)
	}
	hash := planned.Status.PlanHash

	// The definition is edited while the plan waits for approval: the reviewed plan can still be
	// approved.
	l.define(func(spec *v1alpha1.ConfigurationProfileDefinitionSpec) {
		waitsFor("false")(spec)
		spec.Items[1].Object = strings.ReplaceAll(spec.Items[1].Object, `"Managed"`, `"Unmanaged"`)
	})
	outdated := func(want bool) {
		t.Helper()
		l.settle()
		if got := meta.IsStatusConditionTrue(l.plan("own").Status.Conditions, v1alpha1.ConditionUpgradeAvailable); got != want {
			t.Errorf("UpgradeAvailable %t", got)
		}
	}
	outdated(true)
	if now := l.is("own", v1alpha1.PhaseReviewRequired); now.Status.PlanHash != hash {
		t.Errorf("the edit made another plan: %s", now.Status.PlanHash)
	}
	l.must(l.approve("own", hash))
	l.is("own", v1alpha1.PhaseInProgress, "the descheduler has to look")
	l.restart() // a new leader reads the definition from the store
	l.is("own", v1alpha1.PhaseInProgress, "the descheduler has to look")
	l.definitions = nil // the wait also survives the deletion of the definition
	l.is("own", v1alpha1.PhaseInProgress, "the descheduler has to look")
	l.cluster.alter(descheduler(), "operator", func(o map[string]any) { o["status"] = map[string]any{"looked": true} })
	l.is("own", v1alpha1.PhaseCompleted)
	if managed := l.cluster.value(descheduler(), "spec", "managementState"); managed != "Managed" {
		t.Errorf("managementState %v", managed)
	}

	// A user can compute the plan again to use the edited definition.
	l.define(waitsFor("true"))
	outdated(true)
	l.is("own", v1alpha1.PhaseCompleted)
	l.must(l.retry("own"))
	if again := l.is("own", v1alpha1.PhaseCompleted); again.Status.Definition.Digest != cel.Digest(&l.definitions[ownName].Spec) || again.Status.PlanHash == hash {
		t.Errorf("%+v", again.Status.Definition)
	}
	outdated(false)

	// Drift is judged by the definition from which the plan was computed.
	l.cluster.set(descheduler(), "mallory", int64(7200), "spec", "deschedulingIntervalSeconds")
	l.is("own", v1alpha1.PhaseDrifted, "deschedulingIntervalSeconds")
}
