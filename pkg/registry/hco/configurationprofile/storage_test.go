package configurationprofile_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationprofile"
)

type surveyor struct{ asked *[]string }

func (surveyor) Names(context.Context) ([]string, error) { return []string{"Dense", "Tuning"}, nil }

func (s surveyor) Survey(_ context.Context, selected func(string) bool) ([]v1alpha1.ConfigurationProfile, error) {
	found := []v1alpha1.ConfigurationProfile{}
	for _, name := range []string{"Dense", "Tuning"} {
		if !selected(name) {
			continue
		}
		*s.asked = append(*s.asked, name)
		found = append(found, v1alpha1.ConfigurationProfile{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return found, nil
}

func TestList(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		options *metainternalversion.ListOptions
		want    []string
	}{
		"all":          {"there are few", nil, []string{"Dense", "Tuning"}},
		"by name":      {"kubectl get --field-selector", &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "Tuning")}, []string{"Tuning"}},
		"another name": {"none is computed for nothing", &metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "x")}, nil},
		"by label":     {"they have none", &metainternalversion.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{"a": "b"})}, nil},
		"without one":  {"that is all of them", &metainternalversion.ListOptions{LabelSelector: labels.Everything()}, []string{"Dense", "Tuning"}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			got, err := configurationprofile.NewREST(surveyor{&asked}).List(t.Context(), c.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, asked); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if items := got.(*v1alpha1.ConfigurationProfileList).Items; items == nil || len(items) != len(c.want) {
				t.Errorf("%s: %d profiles", c.reason, len(items))
			}
		})
	}
}

func TestGet(t *testing.T) {
	var asked []string
	profiles := configurationprofile.NewREST(surveyor{&asked})
	if got, err := profiles.Get(t.Context(), "Tuning", nil); err != nil || got.(*v1alpha1.ConfigurationProfile).Name != "Tuning" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := profiles.Get(t.Context(), "tuning", nil); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "there are Dense, Tuning") {
		t.Errorf("a name that is none: %v", err)
	}
}

// TestVerbs: garbage collection, quota and caches ignore profiles, because profiles can be neither
// watched nor deleted.
func TestVerbs(t *testing.T) {
	var profiles any = configurationprofile.NewREST(surveyor{})
	if _, ok := profiles.(rest.Watcher); ok {
		t.Error("profiles can be watched, and nobody would tell of changes")
	}
	if _, ok := profiles.(rest.Creater); ok {
		t.Error("profiles can be created")
	}
	if _, ok := profiles.(rest.GracefulDeleter); ok {
		t.Error("profiles can be deleted")
	}
}

func TestTable(t *testing.T) {
	requirement := func(kind string, state v1alpha1.PrerequisiteState, message string) v1alpha1.ProfileRequirement {
		return v1alpha1.ProfileRequirement{Kind: kind, State: state, Message: message}
	}
	for name, c := range map[string]struct {
		status v1alpha1.ConfigurationProfileStatus
		want   []any
	}{
		"active": {
			v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileActive, Plan: "nightly", PlanPhase: v1alpha1.PhaseCompleted, Prerequisites: v1alpha1.PrerequisiteMet, ImpactSeverity: v1alpha1.ImpactNone},
			[]any{"Tuning", "Active", "nightly (Completed)", "None", "Met", "Faster.", "<none>", ""},
		},
		"missing, each remedy once": {
			v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileInactive, Prerequisites: v1alpha1.PrerequisiteMissing, Message: "long", Requirements: []v1alpha1.ProfileRequirement{
				requirement("A", v1alpha1.PrerequisiteMissing, "install a"), requirement("B", v1alpha1.PrerequisiteMissing, "install a"),
				requirement("C", v1alpha1.PrerequisiteUnknown, "no right"), requirement("D", v1alpha1.PrerequisiteMet, ""),
				{Kind: "E", State: v1alpha1.PrerequisiteMissing, Message: "install e", Optional: true},
			}},
			[]any{"Tuning", "Inactive", "<none>", "Unknown", "Missing: install a", "Faster.", "<none>", "long"},
		},
		"too old": {
			v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileInactive, Prerequisites: v1alpha1.PrerequisiteMissing, Message: "update a"},
			[]any{"Tuning", "Inactive", "<none>", "Unknown", "Missing: update a", "Faster.", "<none>", "update a"},
		},
		"unknown": {
			v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileUnknown, Prerequisites: v1alpha1.PrerequisiteUnknown, Message: "no right", Requirements: []v1alpha1.ProfileRequirement{requirement("C", v1alpha1.PrerequisiteUnknown, "no right")}},
			[]any{"Tuning", "Unknown", "<none>", "Unknown", "Unknown: no right", "Faster.", "<none>", "no right"},
		},
		"reach": {
			v1alpha1.ConfigurationProfileStatus{State: v1alpha1.ProfileInactive, Prerequisites: v1alpha1.PrerequisiteMet, ImpactSeverity: v1alpha1.ImpactHigh, Items: []v1alpha1.ProfileItem{
				{BlastRadius: &v1alpha1.BlastRadius{Pools: []string{"infra", "worker"}, Nodes: 4, Reboot: true, Waves: 2}}, {},
			}},
			[]any{"Tuning", "Inactive", "<none>", "High", "Met", "Faster.", "4 nodes of infra, worker reboot, in 2 waves", ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := &v1alpha1.ConfigurationProfileList{Items: []v1alpha1.ConfigurationProfile{{ObjectMeta: metav1.ObjectMeta{Name: "Tuning"}, Description: "Faster.", Status: c.status}}}
			table, err := configurationprofile.NewREST(surveyor{}).ConvertToTable(t.Context(), list, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, table.Rows[0].Cells); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(table.ColumnDefinitions) != len(c.want) {
				t.Errorf("%d columns and %d cells", len(table.ColumnDefinitions), len(c.want))
			}
		})
	}
}
