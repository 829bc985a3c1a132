package governance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
)

func TestOverlap(t *testing.T) {
	type fields = map[string]any
	spec := func(f fields) fields { return fields{"kind": "K", "spec": f} }
	for name, c := range map[string]struct {
		reason     string
		one, other fields
		want       []string
	}{
		"apart":        {"", spec(fields{"a": "1"}), spec(fields{"b": "2"}), nil},
		"same value":   {"both want the same", spec(fields{"a": "1", "b": fields{"c": int64(2)}}), spec(fields{"a": "1", "b": fields{"c": int64(2)}}), nil},
		"other value":  {"", spec(fields{"a": "1"}), spec(fields{"a": "2"}), []string{".spec.a"}},
		"below":        {"", spec(fields{"b": fields{"c": int64(1), "d": true}}), spec(fields{"b": fields{"c": int64(2), "e": true}}), []string{".spec.b.c"}},
		"list":         {"whose item is whose is not known", spec(fields{"l": []any{"x"}}), spec(fields{"l": []any{"y"}}), []string{".spec.l"}},
		"same list":    {"", spec(fields{"l": []any{"x"}}), spec(fields{"l": []any{"x"}}), nil},
		"map or value": {"", spec(fields{"a": fields{}}), spec(fields{"a": "1"}), []string{".spec.a"}},
		"no value":     {"null removes a field", spec(fields{"a": nil}), spec(fields{"a": "1"}), []string{".spec.a"}},
		"in order":     {"", spec(fields{"z": 1, "a": 1}), spec(fields{"z": 2, "a": 2}), []string{".spec.a", ".spec.z"}},
		"labels":       {"", fields{"metadata": fields{"name": "n", "labels": fields{"a": "1"}}}, fields{"metadata": fields{"name": "n", "labels": fields{"a": "2"}}}, []string{".metadata.labels.a"}},
		"marks":        {"each plan has its own", fields{"metadata": fields{"annotations": fields{"hco.kubevirt.io/governed-by": "a"}}}, fields{"metadata": fields{"annotations": fields{"hco.kubevirt.io/governed-by": "b"}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, governance.Overlap(c.one, c.other)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if diff := cmp.Diff(c.want, governance.Overlap(c.other, c.one)); diff != "" {
				t.Errorf("%s, the other way (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestRivals(t *testing.T) {
	other := func(phase v1alpha1.Phase) *v1alpha1.ConfigurationPlan {
		return &v1alpha1.ConfigurationPlan{Status: v1alpha1.ConfigurationPlanStatus{Phase: phase, Manifests: "m"}}
	}
	for phase, want := range map[v1alpha1.Phase][2]bool{ // for a plan in ReviewRequired and in Scheduled
		v1alpha1.PhaseReviewRequired: {true, false}, v1alpha1.PhaseScheduled: {true, true}, v1alpha1.PhaseInProgress: {true, true},
		v1alpha1.PhaseCompleted: {true, true}, v1alpha1.PhaseDrifted: {true, true}, v1alpha1.PhaseCompletedWithErrors: {true, true},
		v1alpha1.PhaseDrafting: {}, v1alpha1.PhasePending: {}, v1alpha1.PhaseFailed: {}, v1alpha1.PhaseExpired: {}, v1alpha1.PhaseIgnored: {}, v1alpha1.PhasePrerequisiteFailed: {},
	} {
		if got := [2]bool{governance.MayConflict(v1alpha1.PhaseReviewRequired, other(phase)), governance.MayConflict(v1alpha1.PhaseScheduled, other(phase))}; got != want {
			t.Errorf("%s: %v, want %v", phase, got, want)
		}
	}
}
