package clusterextensionrevision

import (
	"encoding/json"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/store"
)

// TestEncodedBytes: the count equals the encoded size, except for numbers.
func TestEncodedBytes(t *testing.T) {
	if v1alpha1.MaxRecordBytes != store.MaxObjectBytes {
		t.Errorf("the API says %d, the store takes %d", v1alpha1.MaxRecordBytes, store.MaxObjectBytes)
	}
	rapid.Check(t, func(r *rapid.T) {
		value := map[string]any{}
		for range rapid.IntRange(0, 5).Draw(r, "members") {
			value[rapid.StringMatching(`[ -~\n]{0,20}`).Draw(r, "name")] = []any{rapid.StringMatching(`[ -~\t\x01é]{0,50}`).Draw(r, "text"), true, nil}
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			r.Fatal(err)
		}
		if counted := encodedBytes(value); counted < len(encoded) || counted > len(encoded)+4+4*len(value) {
			r.Fatalf("%d bytes are counted as %d: %s", len(encoded), counted, encoded)
		}
	})
}

func TestCheckRest(t *testing.T) {
	type object = map[string]any
	large := func(n int) string { return strings.Repeat("<", n) }
	entries := func(members object) object {
		return object{"spec": object{"phases": []any{object{"objects": []any{members}}}}}
	}
	for name, tc := range map[string]struct {
		reason     string
		tree       object
		operations []map[string]any
		refused    bool
	}{
		"Small":     {reason: "an ordinary one", tree: object{"metadata": object{"name": "a-1"}}},
		"Owner":     {reason: "text that takes six times as much", tree: object{"metadata": object{"ownerReferences": []any{object{"uid": large(objectmeta.MaxBytes / 5)}}}}, refused: true},
		"Unknown":   {reason: "a field that would be dropped is decoded first", tree: object{"other": large(maxRestBytes / 6)}, refused: true},
		"Manifest":  {reason: "manifests have a limit of their own, also those that are wrong", tree: entries(object{"object": large(maxRestBytes)})},
		"Identity":  {reason: "what stands beside a manifest is none", tree: entries(object{"name": large(maxRestBytes)}), refused: true},
		"Operation": {reason: "a JSON patch of metadata", operations: []map[string]any{{"op": "add", "path": "/metadata/labels", "value": large(maxOperationBytes / 6)}}, refused: true},
		"OtherPath": {reason: "a JSON patch may bring manifests", operations: []map[string]any{{"op": "add", "path": "/metadatax", "value": large(maxOperationBytes)}}},
	} {
		t.Run(name, func(t *testing.T) {
			err := checkRest(tc.tree)
			if tc.operations != nil {
				err = checkOperations(tc.operations)
			}
			if (err != nil) != tc.refused || err != nil && !apierrors.IsRequestEntityTooLargeError(err) {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}
