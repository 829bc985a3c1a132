// Package review describes a change for the user who must approve it. Its notes cover deleted
// objects and their content, changes that the API server will refuse, changes of images and rights,
// and values that a CustomResourceDefinition no longer accepts.
//
// It reads the differences that tree found, and writes no diff. Package diff calls it for each
// changed object. Notes contain strings of manifests only shortened and printable, and hidden
// fields have no value in a tree.
package review

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/diff/words"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// Reviewer writes notes.
type Reviewer struct {
	// Before and After are the rights in the old and the new set of objects. Both are nil if only
	// one object is known, or no rights change.
	Before, After *Rights
	// Replaced are the deleted objects that a new object replaces. It may be nil.
	Replaced Replaced
	// Old has the workloads of the old set of objects, or is nil without one.
	Old *Workloads
	// Stop reports whether the time is over: later notes are incomplete and must be discarded.
	Stop func() bool
}

// Change is a changed object.
type Change struct {
	manifest.ID
	// OldVersion and NewVersion are the API versions of the manifests, such as "v1"; empty if the
	// object does not exist.
	OldVersion, NewVersion string
	// Delta is the change of the object; its operation is not Same.
	Delta tree.Delta
}

// Notes returns the notes about a change, in the order of detection. Their number is not limited.
func (r Reviewer) Notes(change Change) []Note {
	w := &writer{Reviewer: r, change: change, delta: change.Delta, old: change.Delta.Old, new: change.Delta.New}
	w.deletion()
	w.apiVersion()
	w.immutable()
	switch id := change.ID; {
	case TemplatePath(id) != nil:
		w.workload(TemplatePath(id))
	case isRole(id):
		w.role()
	case isBinding(id):
		w.binding()
	case id.IsDefinition():
		w.definition()
	case id.Group == "admissionregistration.k8s.io" && strings.HasSuffix(id.Kind, "WebhookConfiguration"):
		w.webhooks()
	case isPolicy(id):
		w.policy()
	case id.GroupKind().String() == "APIService.apiregistration.k8s.io":
		w.apiService()
	}
	return w.notes
}

type writer struct {
	Reviewer
	change Change
	delta  tree.Delta
	// old and new are nil if the object does not exist.
	old, new *tree.Node
	notes    []Note
}

// stays reports whether the object exists before and after.
func (w *writer) stays() bool { return w.old != nil && w.new != nil }

// phrase is text that consists of printable parts.
type phrase string

func (w *writer) add(severity Severity, reason, format string, args ...any) {
	w.notes = append(w.notes, Note{Severity: severity, Reason: reason, ID: w.change.ID, Message: message(format, args...)})
}

// message formats a message. Arguments of type string come from manifests, so they are shortened
// and made printable.
func message(format string, args ...any) string {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = printable.Line(s)
		}
	}
	return fmt.Sprintf(format, args...)
}

// enumerate joins the first items of a list.
func enumerate(things []string) phrase {
	shown := make([]string, len(things))
	for i, thing := range things {
		shown[i] = printable.Line(thing)
	}
	return phrase(words.List(shown))
}

func (w *writer) deletion() {
	if w.new != nil {
		return
	}
	severity, what := note.Warning, "will be deleted"
	switch w.change.ID.GroupKind().String() {
	case "Namespace":
		severity, what = note.Critical, "will be deleted, and everything in it"
	case "CustomResourceDefinition.apiextensions.k8s.io":
		severity, what = note.Critical, "will be deleted, and every object of its kind in the cluster"
	case "PersistentVolumeClaim":
		severity, what = note.Critical, "will be deleted, and its data, if the reclaim policy of its volume is Delete"
	case "StatefulSet.apps":
		what = "will be deleted; the claims it made stay, if persistentVolumeClaimRetentionPolicy does not say otherwise"
	case "APIService.apiregistration.k8s.io":
		what = "will be deleted: the API it registers is no longer served"
	case "Role." + rbacGroup, "ClusterRole." + rbacGroup, "RoleBinding." + rbacGroup, "ClusterRoleBinding." + rbacGroup:
		// The notes on rights list the lost rights.
		severity = note.Info
	case "ConfigMap", "Secret":
		if w.Replaced[w.change.ID] {
			severity, what = note.Info, "will be deleted: a new one with the same keys, and the same name up to the last hyphen, takes its place"
		}
	}
	w.add(severity, note.Deleted, "%s", phrase(what))
}

func (w *writer) apiVersion() {
	if w.stays() && w.change.OldVersion != w.change.NewVersion {
		w.add(note.Info, note.APIVersion, "written in version %s, was %s", w.change.NewVersion, w.change.OldVersion)
	}
}
