package survey_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile/survey"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// tuning is a profile that changes a Pump, and reads Wells if they exist.
type tuning struct {
	reboots int64
	fails   error
}

func (tuning) Name() v1alpha1.ProfileName { return "Tuning" }
func (tuning) Description() string        { return "Pumps run faster." }

func (tuning) Requires() []profile.Requirement {
	return []profile.Requirement{
		{Definition: "pumps.water.example.com", Kind: schema.GroupKind{Group: "water.example.com", Kind: "Pump"}, Install: "the Pump Operator", Objects: true},
		{Definition: "wells.water.example.com", Kind: schema.GroupKind{Group: "water.example.com", Kind: "Well"}, Install: "the Well Operator", Optional: true, Objects: true},
	}
}

func (p tuning) Items(facts profile.Facts, options *v1alpha1.PlanOptions) ([]profile.Item, error) {
	if p.fails != nil {
		return nil, p.fails
	}
	interval := int64(60)
	if options != nil && options.LoadAwareRebalancing != nil {
		interval = int64(*options.LoadAwareRebalancing.DeschedulingIntervalSeconds)
	}
	item := profile.Item{
		Name: "set-up-pump", Impact: v1alpha1.ImpactHigh, Reason: fmt.Sprintf("%d wells", len(facts.Objects[schema.GroupKind{Group: "water.example.com", Kind: "Well"}])),
		Object: map[string]any{
			"apiVersion": "water.example.com/v1", "kind": "Pump", "metadata": map[string]any{"name": "main"},
			"spec": map[string]any{"interval": interval},
		},
	}
	if p.reboots > 0 {
		item.Blast = &v1alpha1.BlastRadius{Pools: []string{"worker"}, Nodes: p.reboots, Reboot: true, Waves: 1}
	}
	return []profile.Item{item}, nil
}

type tries func(work rollout.Work) (preview.Preview, error)

func (t tries) Preview(_ context.Context, work rollout.Work, _ preview.Permit) (preview.Preview, error) {
	return t(work)
}

// says returns a preview of one item.
func says(item preview.Item) tries {
	return func(work rollout.Work) (preview.Preview, error) {
		item.Ref = work.Layers[0].Stages[0].Steps[0].Ref
		return preview.Preview{Items: []preview.Item{item}}, nil
	}
}

func created() tries { return says(preview.Item{Action: rollout.Create}) }
func same() tries    { return says(preview.Item{Exists: true, Action: rollout.Idle}) }

func pump(interval int, annotations string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"water.example.com/v1","kind":"Pump","metadata":{"name":"main","annotations":{%s}},"spec":{"interval":%d}}`, annotations, interval)
}

func changed() tries {
	return says(preview.Item{Exists: true, Before: pump(30, ""), After: pump(60, "")})
}

// definition returns the definition of a kind of the example.
func definition(kind string) *unstructured.Unstructured {
	plural := strings.ToLower(kind) + "s"
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + ".water.example.com"},
		"spec":   map[string]any{"names": map[string]any{"plural": plural}, "versions": []any{map[string]any{"name": "v1", "served": true}}},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": "True"}}},
	}}
}

func well(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "water.example.com/v1", "kind": "Well", "metadata": map[string]any{"name": name}}}
}

func client(objects ...*unstructured.Unstructured) *fake.FakeDynamicClient {
	var known []runtime.Object
	for _, object := range objects {
		known = append(known, object)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		{Group: "water.example.com", Version: "v1", Resource: "pumps"}: "PumpList",
		{Group: "water.example.com", Version: "v1", Resource: "wells"}: "WellList",
	}, known...)
}

// plan returns a plan that holds the profile and has the current items of the profile.
func plan(t *testing.T, phase hco.Phase) *hco.ConfigurationPlan {
	t.Helper()
	items, err := tuning{}.Items(profile.Facts{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	marked, err := governance.Marked(items[0], "nightly")
	if err != nil {
		t.Fatal(err)
	}
	p := &hco.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: hco.ConfigurationPlanSpec{Profile: "Tuning"}}
	p.Status = hco.ConfigurationPlanStatus{Phase: phase, Message: "what goes on", Items: []hco.PlanItem{{Name: "set-up-pump", Digest: string(marked.Digest)}}}
	return p
}

// outdated returns a plan that has applied other items than it would have today.
func outdated(p *hco.ConfigurationPlan, active metav1.ConditionStatus) *hco.ConfigurationPlan {
	p.Status.Items[0].Digest = "sha256:other"
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProfileActive, Status: active}}
	return p
}

// restoring returns a plan that restores an earlier state.
func restoring(p *hco.ConfigurationPlan) *hco.ConfigurationPlan {
	p.Spec.RestoreRun = 1
	return p
}

// refusing makes requests for a resource fail.
func refusing(c *fake.FakeDynamicClient, verb, resource string) *fake.FakeDynamicClient {
	c.PrependReactor(verb, resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("not today"))
	})
	return c
}

func TestState(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		profile tuning
		client  *fake.FakeDynamicClient
		try     tries
		plan    *hco.ConfigurationPlan

		want    v1alpha1.ProfileState
		needs   v1alpha1.PrerequisiteState
		impact  v1alpha1.ImpactSeverity
		message string
	}{
		"not enabled": {
			reason: "what a plan would make is not there", try: created(),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh,
		},
		"not as the profile says": {
			reason: "a field has another value", try: changed(),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh,
		},
		"set by hand": {
			reason: "it is in effect, no matter who did that", try: same(),
			want: v1alpha1.ProfileActive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactNone, message: "no plan keeps it so",
		},
		"only marks differ": {
			reason: "they say who governs an object, not how it is",
			try:    says(preview.Item{Exists: true, Before: pump(60, `"hco.kubevirt.io/governed-by":"gone"`), After: pump(60, "")}),
			want:   v1alpha1.ProfileActive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactNone, message: "no plan keeps it so",
		},
		"set, but not on all nodes": {
			reason: "what needs a reboot is not in effect before it", profile: tuning{reboots: 3}, try: same(),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactNone, message: "3 nodes do not have it yet",
		},
		"refused": {
			reason: "a plan would be refused, too", try: says(preview.Item{Failure: &rollout.Failure{Reason: "Invalid", Message: "no such namespace"}}),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh,
		},
		"by a plan": {
			reason: "the plan made it so", try: same(), plan: plan(t, hco.PhaseCompleted),
			want: v1alpha1.ProfileActive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactNone,
		},
		"drifted, and the plan says so": {
			reason: "both agree", try: changed(), plan: plan(t, hco.PhaseDrifted),
			want: v1alpha1.ProfileDrifted, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh, message: "not as plan nightly says: Pump.water.example.com main",
		},
		"drifted a moment ago": {
			reason: "the cluster is asked, and not the plan", try: created(), plan: plan(t, hco.PhaseCompleted),
			want: v1alpha1.ProfileDrifted, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh, message: "Pump.water.example.com main does not exist",
		},
		"to be reviewed": {
			reason: "the plan has done nothing yet", try: changed(), plan: plan(t, hco.PhaseReviewRequired),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh, message: "plan nightly is ReviewRequired: what goes on",
		},
		"being executed": {
			reason: "everything is written, and waited for", try: same(), plan: plan(t, hco.PhaseInProgress),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactNone, message: "plan nightly is InProgress",
		},
		"rolled back": {
			reason: "the plan has put back what there was", try: changed(), plan: restoring(plan(t, hco.PhaseCompleted)),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh, message: "plan nightly is Completed",
		},
		"failed plan": {
			reason: "it holds nothing", try: changed(), plan: plan(t, hco.PhaseFailed),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh,
		},
		"another plan today": {
			reason: "what the plan applied stays in effect until somebody asks for more", try: changed(),
			plan: outdated(plan(t, hco.PhaseCompleted), metav1.ConditionTrue),
			want: v1alpha1.ProfileActive, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh, message: "a plan computed today would be different",
		},
		"another plan today, and drifted": {
			reason: "the plan knows", try: changed(), plan: outdated(plan(t, hco.PhaseDrifted), metav1.ConditionFalse),
			want: v1alpha1.ProfileDrifted, needs: v1alpha1.PrerequisiteMet, impact: v1alpha1.ImpactHigh, message: "a plan computed today would be different",
		},
		"missing": {
			reason: "it says what to install", client: client(), try: created(),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMissing, message: "install the Pump Operator",
		},
		"too old": {
			reason: "the definition is there, and knows too little", profile: tuning{fails: &profile.MissingError{Message: "update the Pump Operator"}},
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMissing, message: "update the Pump Operator",
		},
		"cannot be computed": {
			reason: "nobody knows what a plan would be", profile: tuning{fails: errors.New("no idea")},
			want: v1alpha1.ProfileUnknown, needs: v1alpha1.PrerequisiteMet, message: "a plan cannot be computed: no idea",
		},
		"definition not readable": {
			reason: "what cannot be read is not missing", client: refusing(client(), "get", "customresourcedefinitions"),
			want: v1alpha1.ProfileUnknown, needs: v1alpha1.PrerequisiteUnknown, message: "reading CustomResourceDefinition pumps.water.example.com: ",
		},
		"objects not readable": {
			reason: "a plan by the defaults would be another one", client: refusing(client(definition("Pump"), definition("Well")), "list", "wells"),
			try:  created(),
			want: v1alpha1.ProfileUnknown, needs: v1alpha1.PrerequisiteMet, message: "listing wells.water.example.com: ",
		},
		"missing, and more not readable": {
			reason: "what is missing is missing in any case", client: refusing(client(definition("Well")), "list", "wells"),
			want: v1alpha1.ProfileInactive, needs: v1alpha1.PrerequisiteMissing, message: "install the Pump Operator",
		},
		"nobody answers": {
			reason: "a plan that says Completed is no proof", plan: plan(t, hco.PhaseCompleted),
			try: func(rollout.Work) (preview.Preview, error) {
				return preview.Preview{}, errors.New("connection refused")
			},
			want: v1alpha1.ProfileUnknown, needs: v1alpha1.PrerequisiteMet, message: "asking what item set-up-pump would do: connection refused",
		},
		"not served yet": {
			reason: "whether it exists cannot be told",
			try:    says(preview.Item{Failure: &rollout.Failure{Reason: rollout.ReasonNotServed, Message: "its kind is not served"}}),
			want:   v1alpha1.ProfileUnknown, needs: v1alpha1.PrerequisiteMet, message: "its kind is not served",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if c.client == nil {
				c.client = client(definition("Pump"))
			}
			got := look(t, survey.Deps{Profiles: []profile.Profile{c.profile}, Client: c.client, Previewer: c.try, Plans: plansOf(c.plan)}).Status
			if got.State != c.want || got.Prerequisites != c.needs || got.ImpactSeverity != c.impact || !strings.Contains(got.Message, c.message) || c.message == "" && got.Message != "" {
				t.Errorf("%s: got %s, prerequisites %s, impact %q, message %q; want %s, %s, %q, %q", c.reason,
					got.State, got.Prerequisites, got.ImpactSeverity, got.Message, c.want, c.needs, c.impact, c.message)
			}
			holds := c.plan != nil && governance.Active(v1alpha1.Phase(c.plan.Status.Phase))
			if (got.Plan != "") != holds {
				t.Errorf("the plan that holds it is %q", got.Plan)
			}
		})
	}
}

func plansOf(plan *hco.ConfigurationPlan) survey.Plans {
	return func(context.Context) ([]hco.ConfigurationPlan, error) {
		other := hco.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: hco.ConfigurationPlanSpec{Profile: "Other"}, Status: hco.ConfigurationPlanStatus{Phase: hco.PhaseCompleted}}
		if plan == nil {
			return []hco.ConfigurationPlan{other}, nil
		}
		return []hco.ConfigurationPlan{other, *plan}, nil
	}
}

func look(t *testing.T, deps survey.Deps) v1alpha1.ConfigurationProfile {
	t.Helper()
	found, err := survey.New(deps).Survey(t.Context(), func(name string) bool { return name == "Tuning" })
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// TestWhole: the survey lists every requirement and every item.
func TestWhole(t *testing.T) {
	p := plan(t, hco.PhaseCompleted)
	interval := int32(90)
	p.Spec.Options = &hco.PlanOptions{LoadAwareRebalancing: &hco.LoadAwareRebalancingOptions{DeschedulingIntervalSeconds: &interval}}
	var asked string
	cluster := client(definition("Pump"), definition("Well"), well("a"), well("b"))
	got := look(t, survey.Deps{
		Profiles: []profile.Profile{tuning{reboots: 2}}, Client: cluster, Plans: plansOf(p),
		Previewer: tries(func(work rollout.Work) (preview.Preview, error) {
			ref := work.Layers[0].Stages[0].Steps[0].Ref
			body, err := work.Bodies.Body(t.Context(), ref)
			asked = string(body)
			return preview.Preview{Items: []preview.Item{{Ref: ref, Action: rollout.Create}}}, err
		}),
	})
	if !strings.Contains(asked, `"interval":90`) {
		t.Errorf("the cluster was asked about %s, not with the options of the plan", asked)
	}
	if requests := cluster.Actions(); len(requests) != 4 {
		t.Errorf("two definitions cost %d requests: %v", len(requests), requests)
	}
	want := v1alpha1.ConfigurationProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "Tuning"}, Description: "Pumps run faster.",
		Status: v1alpha1.ConfigurationProfileStatus{
			State: v1alpha1.ProfileInactive, Plan: "nightly", PlanPhase: v1alpha1.PhaseCompleted, Prerequisites: v1alpha1.PrerequisiteMet, ImpactSeverity: v1alpha1.ImpactHigh,
			Message: "this is the state that plan nightly reports; a plan computed today would be different",
			Requirements: []v1alpha1.ProfileRequirement{
				{Definition: "pumps.water.example.com", Kind: "Pump", State: v1alpha1.PrerequisiteMet},
				{Definition: "wells.water.example.com", Kind: "Well", Optional: true, State: v1alpha1.PrerequisiteMet},
			},
			Items: []v1alpha1.ProfileItem{{
				Name: "set-up-pump", TargetRef: v1alpha1.TargetRef{APIVersion: "water.example.com/v1", Kind: "Pump", Name: "main"}, Action: v1alpha1.ItemCreate,
				ImpactSeverity: v1alpha1.ImpactHigh, ImpactReason: "2 wells", BlastRadius: &v1alpha1.BlastRadius{Pools: []string{"worker"}, Nodes: 2, Reboot: true, Waves: 1},
			}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTimeout: if a cluster does not answer, the reader waits only for the timeout.
func TestTimeout(t *testing.T) {
	hangs := client(definition("Pump"))
	got := look(t, survey.Deps{
		Profiles: []profile.Profile{tuning{}}, Client: hangs, Plans: plansOf(nil), Timeout: time.Millisecond,
		Previewer: hanging{},
	}).Status
	if got.State != v1alpha1.ProfileUnknown || !strings.Contains(got.Message, context.DeadlineExceeded.Error()) {
		t.Errorf("got %s: %s", got.State, got.Message)
	}
}

type hanging struct{}

func (hanging) Preview(ctx context.Context, _ rollout.Work, _ preview.Permit) (preview.Preview, error) {
	<-ctx.Done()
	return preview.Preview{}, ctx.Err()
}

// TestListReadsOnce: a list reads the definitions once. A second read would fail the whole list if
// a definition was deleted meanwhile.
func TestListReadsOnce(t *testing.T) {
	reads := 0
	surveyor := survey.New(survey.Deps{
		Profiles: []profile.Profile{tuning{}}, Client: client(), Plans: plansOf(nil),
		Definitions: func(context.Context) ([]*cel.Profile, error) { reads++; return nil, nil },
	})
	list, err := configurationprofile.NewREST(surveyor).List(t.Context(), nil)
	if err != nil || len(list.(*v1alpha1.ConfigurationProfileList).Items) != 1 || reads != 1 {
		t.Errorf("%v, %v after %d readings", list, err, reads)
	}
}
