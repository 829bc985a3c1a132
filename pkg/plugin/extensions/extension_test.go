package extensions

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// TestFollowedExtension: the command follows an extension until it matches its current spec, waits
// for approval, or needs a user. Conditions of an older generation do not count.
func TestFollowedExtension(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, generation int64) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: "of this", ObservedGeneration: generation}
	}
	of := func(generation int64, conditions ...metav1.Condition) *extension.Extension {
		e := &extension.Extension{}
		e.UID, e.Generation, e.Status.Conditions = "now", generation, conditions
		return e
	}
	revision := func(number int64, generation string, state v1alpha1.LifecycleState, conditions ...string) *v1alpha1.ClusterExtensionRevision {
		r := &v1alpha1.ClusterExtensionRevision{}
		r.Name, r.Spec.Revision, r.Spec.LifecycleState, r.Generation, r.Status.ObservedGeneration = "e-1", number, state, 1, 1
		r.Annotations = map[string]string{extension.GenerationAnnotation: generation}
		r.OwnerReferences = []metav1.OwnerReference{{UID: "now", Controller: ptr.To(true)}}
		for _, kind := range conditions {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Because", ObservedGeneration: 1})
		}
		return r
	}
	waiting := revision(2, "2", v1alpha1.LifecycleStatePaused)
	waiting.Annotations[v1alpha1.ProposedAnnotation] = "true"
	left := revision(1, "1", v1alpha1.LifecycleStateArchived)
	left.OwnerReferences = nil
	done := []string{v1alpha1.ConditionSucceeded, v1alpha1.ConditionReady}
	for name, c := range map[string]struct {
		reason string
		seen   followed
		done   bool
		says   string
	}{
		"nobody has looked": {"there is no status yet", followed{extension: of(1)}, false, ""},
		"of an older spec":  {"the revision is what was asked for before", followed{extension: of(2, condition("Ready", metav1.ConditionTrue, 1)), revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, "1", v1alpha1.LifecycleStateActive, done...)}}, false, ""},
		"as asked for":      {"made of this spec, and rolled out", followed{extension: of(2), revisions: []*v1alpha1.ClusterExtensionRevision{revision(1, "1", v1alpha1.LifecycleStateActive), revision(2, "2", v1alpha1.LifecycleStateActive, done...)}}, true, ""},
		"on its way":        {"it is rolled out", followed{extension: of(2), revisions: []*v1alpha1.ClusterExtensionRevision{revision(2, "2", v1alpha1.LifecycleStateActive)}}, false, ""},
		"left by another":   {"an earlier extension of the name had that generation too", followed{extension: of(1), revisions: []*v1alpha1.ClusterExtensionRevision{left}}, false, ""},
		"proposed":          {"a person has to approve it", followed{extension: of(2, condition("Stalled", metav1.ConditionTrue, 2)), revisions: []*v1alpha1.ClusterExtensionRevision{waiting}}, true, ""},
		"denied":            {"a person has to act", followed{extension: of(2, condition("Stalled", metav1.ConditionTrue, 2))}, true, "of this"},
		"denied before":     {"that was the spec before", followed{extension: of(3, condition("Stalled", metav1.ConditionTrue, 2))}, false, ""},
		"deleted":           {"somebody deleted it", followed{}, true, "was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			ended, err := c.seen.ended("e")
			if ended != c.done || (err != nil) != (c.says != "") || err != nil && (!strings.Contains(err.Error(), c.says) || outcome.Of(err) != outcome.No) {
				t.Errorf("%s: got %t, %v", c.reason, ended, err)
			}
			if len(c.seen.lines("e")) == 0 {
				t.Error("there is no picture")
			}
		})
	}
}

// TestSearched: a search finds a package by its name, its description, or its kinds.
func TestSearched(t *testing.T) {
	one := &catalogv1alpha1.CatalogPackage{Description: "Gives light.", Kinds: []catalogv1alpha1.PackageKind{{Group: "lamp.example.com", Kind: "Lamp"}}}
	one.Name = "torch"
	for wanted, want := range map[string]bool{"": true, "TOR": true, "light": true, "lamp": true, "Lamp.lamp.example.com": true, "la": false, "Lamp.example.com": false} {
		if matches(one, wanted) != want {
			t.Errorf("%q: want %t", wanted, want)
		}
	}
}
