package revisiondiff

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/signer"
)

// These are the reasons of notes that belong to no object.
const (
	reasonNoEarlierRevision = "NoEarlierRevision"
	reasonKept              = "Kept"
	reasonPatched           = "Patched"
)

func newDiff(from, to *olm.ClusterExtensionRevision) *v1alpha1.RevisionDiff {
	out := &v1alpha1.RevisionDiff{To: to.Name}
	if from != nil {
		out.From = from.Name
	}
	out.ObjectMeta = named(out.From + separator + out.To)
	return out
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// noEarlierRevision returns the note that explains why every object is new. An earlier revision may
// have existed and been deleted.
func noEarlierRevision(revision *olm.ClusterExtensionRevision) v1alpha1.DiffNote {
	chain, _, _ := olm.ChainOf(revision.Name)
	return v1alpha1.DiffNote{
		Severity: v1alpha1.NoteInfo, Reason: reasonNoEarlierRevision,
		Message: fmt.Sprintf("no revision of %s before %s is stored: everything counts as added", chain, revision.Name),
	}
}

// lostSigner inserts a note at the front if another identity signed the image.
func lostSigner(out *v1alpha1.RevisionDiff, from, to *olm.ClusterExtensionRevision) {
	if from == nil {
		return
	}
	if lost := signer.Lost(from.Annotations[v1alpha1.VerifiedAnnotation], to.Annotations[v1alpha1.VerifiedAnnotation]); lost != "" {
		found := review.Signer(lost)
		out.Notes = slices.Insert(out.Notes, 0, v1alpha1.DiffNote{Severity: v1alpha1.NoteCritical, Reason: found.Reason, Message: found.Message})
	}
}

// asItWas returns the note that the cluster was not asked again, with the age of the answer.
func asItWas(age time.Duration) v1alpha1.DiffNote {
	return v1alpha1.DiffNote{
		Severity: v1alpha1.NoteInfo, Reason: reasonKept,
		Message: fmt.Sprintf("this is how the cluster was %.1f s ago, when another request asked the same; ask again in a few seconds to see it as it is now", age.Seconds()),
	}
}

// fill writes the parts of a report that the caller may see.
func (s *scope) fill(out *v1alpha1.RevisionDiff, report diff.Report) {
	var left diff.Truncation
	for i := range report.Changes {
		change := &report.Changes[i]
		if !s.shows(change.ID) {
			continue
		}
		switch change.Kind {
		case diff.Added:
			out.Summary.Added++
		case diff.Removed:
			out.Summary.Removed++
		case diff.Changed:
			out.Summary.Changed++
		default:
			continue
		}
		shown := s.change(change)
		shown.Truncated = s.truncation(change.Truncated)
		out.Changes = append(out.Changes, shown)
		left.Add(change.Truncated)
	}
	for _, one := range report.Notes {
		if s.shows(one.ID) {
			out.Notes = append(out.Notes, v1alpha1.DiffNote{
				Severity: v1alpha1.NoteSeverity(one.Severity), Reason: one.Reason,
				Group: one.Group, Kind: one.ID.Kind, Namespace: one.Namespace, Name: one.Name, Message: one.Message,
			})
		}
	}
	if s.selection.All() {
		left.Notes = report.Truncated.Notes
	}
	out.Truncated = s.truncation(left)
}

// count sets the numbers of the summary that the changes do not show: withheld objects, unchanged
// objects and sizes.
func (s *scope) count(summary *v1alpha1.DiffSummary, from, to *olm.ClusterExtensionRevision) {
	for id := range s.hidden {
		if s.matches(id) {
			summary.Withheld++
		}
	}
	all := map[manifest.ID]bool{}
	summary.FromBytes = s.countObjects(from, all)
	summary.ToBytes = s.countObjects(to, all)
	if rest := int32(len(all)) - summary.Added - summary.Changed - summary.Removed; rest > 0 {
		summary.Unchanged = rest
	}
}

// countObjects collects the objects of a revision that the caller may see, and returns the total
// size of their manifests. A revision does not show the sizes of Secrets.
func (s *scope) countObjects(revision *olm.ClusterExtensionRevision, into map[manifest.ID]bool) int64 {
	if revision == nil {
		return 0
	}
	sizes := int64(0)
	refs := clusterextensionrevision.Refs(revision)
	for _, phase := range revision.Spec.Phases {
		for i := range phase.Objects {
			if id := refs[0].ID; s.shows(id) {
				into[id] = true
				sizes += phase.Objects[i].Size
			}
			refs = refs[1:]
		}
	}
	return sizes
}

func (s *scope) change(change *diff.Change) v1alpha1.ObjectChange {
	out := v1alpha1.ObjectChange{
		Change:     v1alpha1.ChangeType(change.Kind),
		APIVersion: apiVersion(change.Group, change.NewVersion),
		Kind:       change.ID.Kind, Namespace: change.Namespace, Name: change.Name,
		FieldCount: int32(change.FieldCount()),
		LinesAdded: int32(change.AddedLines), LinesRemoved: int32(change.RemovedLines),
		OnlyLabels: change.OnlyLabels, NotCompared: change.NotCompared,
	}
	switch {
	case change.NewVersion == "":
		out.APIVersion = apiVersion(change.Group, change.OldVersion)
	case change.OldVersion != "" && change.OldVersion != change.NewVersion:
		out.FromAPIVersion = apiVersion(change.Group, change.OldVersion)
	}
	if s.unified {
		out.Unified = change.Unified
	}
	for i := range change.Fields {
		out.Fields = append(out.Fields, fieldChange(&change.Fields[i]))
	}
	return out
}

func apiVersion(group, version string) string {
	return schema.GroupVersion{Group: group, Version: version}.String()
}

func fieldChange(field *diff.FieldChange) v1alpha1.FieldChange {
	out := v1alpha1.FieldChange{
		Path: field.Path, Op: string(field.Op), Old: anyValue(field.Old), New: anyValue(field.New),
		Redacted: field.Redacted, TruncatedBytes: int32(field.Truncated),
	}
	if field.Index != nil {
		index := int32(*field.Index)
		out.Index = &index
	}
	return out
}

func anyValue(value json.RawMessage) *v1alpha1.AnyValue {
	if value == nil {
		return nil
	}
	return &v1alpha1.AnyValue{Raw: value}
}

func (s *scope) truncation(left diff.Truncation) *v1alpha1.DiffTruncation {
	if !s.unified {
		left.Lines = 0 // they were not requested
	}
	if left.IsZero() {
		return nil
	}
	return &v1alpha1.DiffTruncation{
		Objects: int32(left.Objects), Fields: int32(left.Fields), Values: int32(left.Values),
		Lines: int32(left.Lines), Notes: int32(left.Notes),
	}
}
