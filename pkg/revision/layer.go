package revision

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/revision/references"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// Layer compiles a revision; byLevels makes it roll out by install level. An error means that the
// revision can never be rolled out unchanged. Validation keeps such revisions out of the store.
func Layer(revision *olmv1alpha1.ClusterExtensionRevision, byLevels bool) (rollout.Layer, error) {
	probes, err := probes(revision.Spec.ProgressionProbes)
	if err != nil {
		return rollout.Layer{}, fmt.Errorf("progression probes of %s: %w", revision.Name, err)
	}
	stages, err := stage.Compile(phases(revision), stage.Options{Probes: probes, Levels: byLevels})
	if err != nil {
		return rollout.Layer{}, fmt.Errorf("phases of %s: %w", revision.Name, err)
	}
	return rollout.Layer{
		Key:      string(revision.UID),
		Revision: revision.Spec.Revision,
		Stages:   stages,
		Levels:   byLevels,
		Paused:   revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused,
	}, nil
}

func phases(revision *olmv1alpha1.ClusterExtensionRevision) []stage.Phase {
	out := make([]stage.Phase, 0, len(revision.Spec.Phases))
	for _, phase := range revision.Spec.Phases {
		steps := make([]stage.Step, 0, len(phase.Objects))
		for _, object := range phase.Objects {
			protection := cmp.Or(object.CollisionProtection, phase.CollisionProtection, revision.Spec.CollisionProtection)
			mark := Mark(object)
			steps = append(steps, stage.Step{Ref: references.To(object), Level: mark.Level, Policy: stage.Policy{
				Adopt: adoption(protection), CreateOnly: mark.CreateOnly, Yield: yield(revision.Spec.Yield, object),
			}})
		}
		out = append(out, stage.Phase{Name: phase.Name, Steps: steps})
	}
	return out
}

// yield returns the fields of an object that the rules leave to other managers.
func yield(rules []olmv1alpha1.YieldRule, object olmv1alpha1.RevisionObject) []manifest.FieldPath {
	var out []manifest.FieldPath
	id := references.To(object).ID
	for _, rule := range rules {
		s := rule.Selector
		if s.GroupKind.Group != id.Group || s.GroupKind.Kind != id.Kind ||
			s.Namespace != "" && s.Namespace != id.Namespace || s.Name != "" && s.Name != id.Name {
			continue
		}
		for _, text := range rule.Fields {
			// The API accepts only well-formed paths.
			if path, err := manifest.ParseFieldPath(text); err == nil {
				out = append(out, path)
			}
		}
	}
	return out
}

func adoption(protection olmv1alpha1.CollisionProtection) stage.Adoption {
	switch protection {
	case olmv1alpha1.CollisionProtectionNone:
		return stage.AdoptAlways
	case olmv1alpha1.CollisionProtectionIfNoController:
		return stage.AdoptUncontrolled
	default:
		return stage.AdoptNever
	}
}

func probes(custom []olmv1alpha1.ProgressionProbe) (probe.Set, error) {
	specs := make([]probe.Spec, 0, len(custom))
	for i, p := range custom {
		spec := probe.Spec{}
		if kind := p.Selector.GroupKind; kind != nil {
			spec.Selector.GroupKind = &schema.GroupKind{Group: kind.Group, Kind: kind.Kind}
		}
		if p.Selector.LabelSelector != nil {
			selector, err := metav1.LabelSelectorAsSelector(p.Selector.LabelSelector)
			if err != nil {
				return nil, fmt.Errorf("label selector of probe %d: %w", i, err)
			}
			spec.Selector.Labels = selector
		}
		for _, a := range p.Assertions {
			spec.Assertions = append(spec.Assertions, assertion(a))
		}
		specs = append(specs, spec)
	}
	return probe.New(specs)
}

func assertion(a olmv1alpha1.ProbeAssertion) probe.Assertion {
	var out probe.Assertion
	if c := a.ConditionEqual; c != nil {
		out.ConditionEqual = &probe.ConditionEqual{Type: c.Type, Status: string(c.Status)}
	}
	if f := a.FieldsEqual; f != nil {
		out.FieldsEqual = &probe.FieldsEqual{FieldA: f.FieldA, FieldB: f.FieldB}
	}
	if f := a.FieldValue; f != nil {
		out.FieldValue = &probe.FieldValue{FieldPath: f.FieldPath, Value: f.Value}
	}
	if c := a.CEL; c != nil {
		out.CEL = &probe.CEL{Expression: c.Expression, Message: c.Message}
	}
	return out
}

// TakesFrom returns the extensions whose protected objects a revision may take.
func TakesFrom(revision *olmv1alpha1.ClusterExtensionRevision) map[string]bool {
	listed := revision.Annotations[olmv1alpha1.TakeOverFromAnnotation]
	if listed == "" {
		return nil
	}
	extensions := map[string]bool{}
	for name := range strings.SplitSeq(listed, ",") {
		extensions[strings.TrimSpace(name)] = true
	}
	return extensions
}
