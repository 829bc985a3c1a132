package plan

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/warning"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
)

type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// export returns the export of a plan for a repository, by target.
func (l *lab) export(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	found, err := l.storage.Export.Get(ctx, "a", &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]*unstructured.Unstructured{}
	for _, raw := range found.(*hco.PlanManifestList).Items {
		object := &unstructured.Unstructured{}
		l.must(object.UnmarshalJSON(raw.Raw))
		out[object.GetKind()] = object
	}
	return out, nil
}

// refusesExport fails unless the export is refused with a reason.
func (l *lab) refusesExport(says string) {
	l.t.Helper()
	if _, err := l.export(as("reader")); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), says) {
		l.t.Errorf("exporting plan a: %v, want 409 with %q", err, says)
	}
}

// TestExport: the approved plan can be exported while it waits for its window, during its
// execution, and afterwards, until the plan changes.
func TestExport(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseReviewRequired, people(2), nightly)
	l.refusesExport("is not approved")
	hash := l.plan("a").Status.PlanHash
	l.must(l.approveAs("bob", "a", hash))
	l.refusesExport("1 of 2 approvals")
	l.must(l.approveAs("carol", "a", hash))
	looks := func(when string) {
		t.Helper()
		exported, err := l.export(as("reader"))
		l.must(err)
		config, tuned := exported["MachineConfig"], exported["KubeDescheduler"]
		if len(exported) != 2 || config == nil || tuned == nil {
			t.Fatalf("%s: exported %v", when, exported)
		}
		arguments, _, _ := unstructured.NestedStringSlice(config.Object, "spec", "kernelArguments")
		if len(arguments) != 1 || arguments[0] != "psi=1" {
			t.Errorf("%s: kernel arguments %v", when, arguments)
		}
		for _, object := range exported {
			marks := object.GetAnnotations()
			if len(marks) != 1 || marks["hco.kubevirt.io/exported-from"] != "a/"+hash {
				t.Errorf("%s: %s has the annotations %v", when, object.GetKind(), marks)
			}
		}
	}
	looks("approved")
	l.is("a", v1alpha1.PhaseScheduled)
	looks("scheduled")
	l.clock.SetTime(l.tonight())
	l.is("a", v1alpha1.PhaseInProgress)
	looks("in progress")
	l.cluster.roll("worker", 4)
	l.is("a", v1alpha1.PhaseCompleted)
	looks("completed")

	l.must(l.edit("a", interval(120)))
	l.refusesExport("a new plan is being computed")
	l.is("a", v1alpha1.PhaseReviewRequired)
	l.refusesExport("is not approved")
}

// TestExportExpired: a plan whose approval expired cannot be exported.
func TestExportExpired(t *testing.T) {
	l := newStore(t).newLab(t)
	l.refusesNothing()
	end := l.clock.Now().Add(time.Hour)
	l.reach(v1alpha1.PhaseReviewRequired, nightly, until(end))
	l.approved()
	l.clock.SetTime(end)
	l.is("a", v1alpha1.PhaseExpired)
	l.refusesExport("is not approved")
}

// refusesNothing fails unless the export of a missing plan returns NotFound.
func (l *lab) refusesNothing() {
	l.t.Helper()
	if _, err := l.export(as("reader")); !apierrors.IsNotFound(err) {
		l.t.Errorf("exporting no plan: %v", err)
	}
}

// TestExportOfWhatGoes: a manifest cannot express that an object must be deleted.
func TestExportOfWhatGoes(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	l.must(l.rollback("a", 0))
	l.approved()
	var said warnings
	exported, err := l.export(warning.WithWarningRecorder(as("reader"), &said))
	l.must(err)
	if len(exported) != 1 || exported["KubeDescheduler"] == nil {
		t.Errorf("exported %v", exported)
	}
	if len(said) != 1 || !strings.Contains(said[0], "99-worker-psi-karg") {
		t.Errorf("warnings: %q", said)
	}
}

// TestExportIsWhatIsApplied: if another tool applies the export, nothing drifts.
func TestExportIsWhatIsApplied(t *testing.T) {
	l := newStore(t).newLab(t)
	l.reach(v1alpha1.PhaseCompleted)
	exported, err := l.export(as("reader"))
	l.must(err)
	for kind, object := range exported {
		id := map[string]manifest.ID{"MachineConfig": psi(), "KubeDescheduler": descheduler()}[kind]
		spec, _, _ := unstructured.NestedMap(object.Object, "spec")
		for field, want := range spec {
			have, _ := json.Marshal(l.cluster.value(id, "spec", field))
			wanted, _ := json.Marshal(want)
			if string(have) != string(wanted) {
				t.Errorf("%s: %s is %s, exported is %s", kind, field, have, wanted)
			}
		}
	}
}
