package screens

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/text"
)

// Profiles holds the profiles of plans, with their states in the cluster.
type Profiles struct {
	// Asked is the time when the profiles were computed, in RFC 3339. Each read computes them
	// again.
	Asked    string    `json:"asked"`
	Profiles []Profile `json:"profiles"`
	// Hidden is the reason why definitions are not shown, or nil.
	Hidden *Refusal `json:"hidden,omitempty"`
}

// Profile is one profile.
type Profile struct {
	Name        string                              `json:"name"`
	Signal      Signal                              `json:"signal"`
	Description string                              `json:"description"`
	Options     []v1alpha1.ProfileOption            `json:"options,omitempty"`
	Status      v1alpha1.ConfigurationProfileStatus `json:"status"`
	// Own is true for a user-defined profile: it has a ConfigurationProfileDefinition.
	Own bool `json:"own,omitempty"`
	// PlanSignal and PlanImpact are from status.plan. They are empty without a plan, or if it is
	// not shown.
	PlanSignal Signal `json:"planSignal,omitempty"`
	PlanImpact string `json:"planImpact,omitempty"`
	// Wrong describes the fault of the definition; empty for none.
	Wrong string `json:"wrong,omitempty"`
}

// MakePlanRequest is a request to compute a plan of a profile. It changes no configuration.
type MakePlanRequest struct {
	// Name is the name of the plan.
	Name string `json:"name"`
	// Options holds values in JSON, by name; strings need no quotes. Missing options have their
	// defaults.
	Options map[string]string `json:"options,omitempty"`
	// Take makes the plan take over fields of other field managers. The plan shows them before it
	// is approved.
	Take bool `json:"take,omitempty"`
}

// profiles reads profiles and definitions at the same time.
func (a *API) profiles(ctx context.Context, _ *http.Request) (any, error) {
	now := metav1.Now()
	out := Profiles{Asked: when(&now), Profiles: []Profile{}}
	wrong := map[string]string{}
	var both sync.WaitGroup
	both.Go(func() {
		defined, err := a.penstock.HcoV1alpha1().ConfigurationProfileDefinitions().List(ctx, metav1.ListOptions{})
		if err != nil {
			refusal := refusalOf(err)
			out.Hidden = &refusal
			return
		}
		for i := range defined.Items {
			wrong[defined.Items[i].Name] = wrongWith(&defined.Items[i])
		}
	})
	listed, err := a.penstock.HcoV1alpha1().ConfigurationProfiles().List(ctx, metav1.ListOptions{})
	both.Wait()
	if err != nil {
		return nil, err
	}
	for i := range listed.Items {
		one := profileOf(&listed.Items[i])
		one.Wrong = wrong[one.Name]
		if one.Status.Plan != "" {
			// Without the right to read plans, the user still sees the plan's name.
			if plan, err := a.penstock.HcoV1alpha1().ConfigurationPlans().Get(ctx, one.Status.Plan, metav1.GetOptions{}); err == nil {
				one.PlanSignal, one.PlanImpact = planSignal(plan), string(plan.Status.ImpactSeverity)
			}
		}
		out.Profiles = append(out.Profiles, one)
	}
	return out, nil
}

func profileOf(read *v1alpha1.ConfigurationProfile) Profile {
	return Profile{
		Name: read.Name, Description: read.Description, Options: read.Options, Status: read.Status,
		Own: v1alpha1.IsOwn(v1alpha1.ProfileName(read.Name)), Signal: profileSignal(&read.Status),
	}
}

func profileSignal(status *v1alpha1.ConfigurationProfileStatus) Signal {
	switch {
	case status.State == v1alpha1.ProfileDrifted:
		return NeedsAttention
	case status.State == v1alpha1.ProfileActive:
		return Healthy
	default:
		return Stopped
	}
}

// wrongWith returns the reason why plans of a definition cannot be executed, or "".
func wrongWith(definition *v1alpha1.ConfigurationProfileDefinition) string {
	granted := meta.FindStatusCondition(definition.Status.Conditions, v1alpha1.ConditionAccessGranted)
	switch {
	case granted == nil || granted.ObservedGeneration != definition.Generation:
		return "Penstock has not looked at its definition yet"
	case granted.Status != metav1.ConditionTrue:
		return text.Line(granted.Message, 2*maxRowMessage)
	default:
		return ""
	}
}

// profileName matches names of profiles. Built-in profiles have capitals.
var profileName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// makePlan creates a plan, which is computed and waits for an approval.
func (a *API) makePlan(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[MakePlanRequest](r)
	if err != nil {
		return nil, err
	}
	if wrong := validation.IsDNS1123Subdomain(asked.Name); len(wrong) > 0 {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("%q is not the name of a plan: %s", asked.Name, wrong[0])}
	}
	name := r.PathValue("profile")
	if !profileName.MatchString(name) {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Name", Message: fmt.Sprintf("%q is not the name of a profile", name)}
	}
	profile, err := a.penstock.HcoV1alpha1().ConfigurationProfiles().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	plan := &v1alpha1.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: asked.Name}, Spec: v1alpha1.ConfigurationPlanSpec{Profile: v1alpha1.ProfileName(profile.Name)}}
	if asked.Take {
		plan.Spec.OnConflict = v1alpha1.OnConflictTake
	}
	if plan.Spec.Options, err = asked.options(profile); err != nil {
		return nil, err
	}
	made, err := a.penstock.HcoV1alpha1().ConfigurationPlans().Create(ctx, plan, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, err
	}
	return Done{Name: made.Name}, nil
}

// options returns the given options as spec.options of a plan: nil for none.
func (m MakePlanRequest) options(profile *v1alpha1.ConfigurationProfile) (*v1alpha1.PlanOptions, error) {
	types := map[string]string{}
	for _, option := range profile.Options {
		types[option.Name] = option.Type
	}
	values := map[string]any{}
	for name, given := range m.Options {
		kind, known := types[name]
		if !known {
			return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("profile %s has no option %q", profile.Name, name)}
		}
		value, err := optionValue(kind, given)
		if err != nil {
			return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("option %s is of type %s: %q is not JSON: %v", name, kind, given, err)}
		}
		if err := unstructured.SetNestedField(values, value, strings.Split(name, ".")...); err != nil {
			return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("option %s: %v", name, err)}
		}
	}
	if len(values) == 0 {
		return nil, nil
	}
	// A built-in profile has its own member; user-defined profiles have values.
	member := "values"
	if !v1alpha1.IsOwn(v1alpha1.ProfileName(profile.Name)) {
		runes := []rune(profile.Name)
		member = string(unicode.ToLower(runes[0])) + string(runes[1:])
	}
	raw, err := json.Marshal(map[string]any{member: values})
	if err != nil {
		return nil, fmt.Errorf("encoding options: %w", err)
	}
	out := &v1alpha1.PlanOptions{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: fmt.Sprintf("options of %s: %v", profile.Name, err)}
	}
	return out, nil
}

// optionValue returns the value that a user wrote: JSON, or else the text itself.
func optionValue(kind, given string) (any, error) {
	var value any
	err := json.Unmarshal([]byte(given), &value)
	if kind != "string" {
		return value, err
	}
	if quoted, is := value.(string); err == nil && is {
		return quoted, nil
	}
	return given, nil
}
