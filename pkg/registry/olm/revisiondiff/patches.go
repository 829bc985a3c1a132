package revisiondiff

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/patch"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxPatchNotes bounds the notes about patches in a diff.
	maxPatchNotes = 50
	// longestPatchNote bounds the message of each note, in bytes.
	longestPatchNote = 500
)

// namePatches adds a note for each changed object about fields that a patch of the ClusterExtension
// has written. No bundle or chart has these values.
func namePatches(out *v1alpha1.RevisionDiff, to *olm.ClusterExtensionRevision) {
	value, patched := to.Annotations[extension.PatchedAnnotation]
	var applied []patch.Applied
	if !patched || json.Unmarshal([]byte(value), &applied) != nil {
		return
	}
	type object struct{ group, kind, namespace, name string }
	changed := map[object]bool{}
	for i := range out.Changes {
		one := &out.Changes[i]
		group, _ := schema.ParseGroupVersion(one.APIVersion) // it is from a manifest
		changed[object{group.Group, one.Kind, one.Namespace, one.Name}] = true
	}
	notes := 0
	for _, one := range applied {
		if !changed[object{one.Group, one.Kind, one.Namespace, one.Name}] || notes == maxPatchNotes {
			continue
		}
		notes++
		out.Notes = append(out.Notes, v1alpha1.DiffNote{
			Severity: v1alpha1.NoteInfo, Reason: reasonPatched, Group: one.Group, Kind: one.Kind, Namespace: one.Namespace, Name: one.Name,
			Message: text.Clip(fmt.Sprintf("patch %d of annotation %s has written %s", one.Patch, extension.PatchesAnnotation, strings.Join(one.Fields, ", ")), longestPatchNote),
		})
	}
}
