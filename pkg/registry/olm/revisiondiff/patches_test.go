package revisiondiff

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// TestNamePatches: for each changed and shown object, the diff names the fields that a patch has
// written.
func TestNamePatches(t *testing.T) {
	noted := func(annotation string, changes ...v1alpha1.ObjectChange) []v1alpha1.DiffNote {
		out := &v1alpha1.RevisionDiff{Changes: changes}
		namePatches(out, &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{extension.PatchedAnnotation: annotation}}})
		return out.Notes
	}
	web := v1alpha1.ObjectChange{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "lamps", Name: "web"}
	const patched = `[{"patch":1,"group":"apps","kind":"Deployment","namespace":"lamps","name":"web","fields":["spec.replicas","spec.paused"]},{"patch":2,"kind":"Service","namespace":"lamps","name":"web","fields":["spec.type"]}]`
	got := noted(patched, web)
	if len(got) != 1 || got[0].Kind != "Deployment" || got[0].Reason != reasonPatched || got[0].Severity != v1alpha1.NoteInfo ||
		got[0].Message != "patch 1 of annotation penstock.dev/patches has written spec.replicas, spec.paused" {
		t.Errorf("got %+v", got)
	}
	if got := noted(patched); len(got) > 0 {
		t.Errorf("of an object that does not change, or is not shown: %+v", got)
	}
	if got := noted("[{", web); len(got) > 0 {
		t.Errorf("of a value that cannot be read: %+v", got)
	}
	one := `{"patch":1,"group":"apps","kind":"Deployment","namespace":"lamps","name":"web","fields":["` + strings.Repeat("a", 1000) + `"]}`
	got = noted("["+one+strings.Repeat(","+one, 99)+"]", web)
	if len(got) != maxPatchNotes || len(got[0].Message) > longestPatchNote {
		t.Errorf("%d notes, the first of %d bytes", len(got), len(fmt.Sprint(got[0].Message)))
	}
}
