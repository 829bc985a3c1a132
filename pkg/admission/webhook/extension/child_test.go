package extension

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/webhooktest"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/order"
)

var penstock = authenticationv1.UserInfo{Username: "system:serviceaccount:penstock-system:penstock"}

func merged(old, more map[string]string) map[string]string {
	all := maps.Clone(old)
	maps.Copy(all, more)
	return all
}

func none(context.Context) ([]order.Extension, error) { return nil, nil }

func isPenstock(username string) bool { return username == penstock.Username }

// signed returns the object with a stamp of alice that Penstock signed for this content.
func signed(t *testing.T, object *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	t.Helper()
	return signedBy(t, alice, object, generation)
}

func signedBy(t *testing.T, who authenticationv1.UserInfo, object *unstructured.Unstructured, generation int64) *unstructured.Unstructured {
	t.Helper()
	digest, err := author.ClusterExtensions().Digest(object)
	if err != nil {
		t.Fatal(err)
	}
	stamp := &author.Stamp{User: who.Username, UID: who.UID, Groups: who.Groups, Time: at, Name: object.GetName(), Generation: generation, Digest: digest}
	if err := key().Sign(stamp); err != nil {
		t.Fatal(err)
	}
	value, err := stamp.Encode()
	if err != nil {
		t.Fatal(err)
	}
	annotations := object.GetAnnotations()
	annotations[extension.AuthorAnnotation] = value
	object.SetAnnotations(annotations)
	return object
}

// TestChild: only Penstock can write children. It writes the stamp of another author, signed for
// exactly this content.
func TestChild(t *testing.T) {
	all := map[string]webhook.Webhook{}
	for _, one := range Webhooks(func() (author.Key, error) { return key(), nil }, func() time.Time { return at }, isPenstock, isPenstock, none, nil) {
		all[one.Name] = one
	}
	made := func(version string) *unstructured.Unstructured {
		return signed(t, written(version, map[string]string{extension.SetAnnotation: "edge", extension.ContentAnnotation: "sha256:a", extension.RolloutAnnotation: "edge-1/1/u"}), 1)
	}
	ask := func(name string, who authenticationv1.UserInfo, object, old *unstructured.Unstructured) webhook.Answer {
		t.Helper()
		return all[name].Decide(t.Context(), webhooktest.Review(t, who, object, old))
	}
	for _, name := range []string{"extension-author", "extension"} {
		if given := ask(name, penstock, made("1.0.0"), nil); given.Refusal != nil || len(given.Annotations) > 0 {
			t.Errorf("%s: the stamp that Penstock brings: %+v", name, given)
		}
	}
	other := made("1.0.0")
	if err := unstructured.SetNestedField(other.Object, "kube-system", "spec", "namespace"); err != nil {
		t.Fatal(err)
	}
	if given := ask("extension-author", penstock, other, nil); given.Refusal == nil {
		t.Errorf("a stamp for other content is taken: %+v", given)
	}
	if given := ask("extension-author", mallory, made("1.0.0"), nil); given.Annotations[extension.AuthorAnnotation] == nil || !strings.Contains(*given.Annotations[extension.AuthorAnnotation], "mallory") {
		t.Errorf("another user brings a stamp: %+v", given)
	}
	if given := ask("extension", mallory, made("1.0.0"), nil); given.Refusal == nil || !strings.Contains(given.Refusal.Message, "only Penstock writes this annotation") {
		t.Errorf("another user makes a child: %+v", given)
	}
	old := made("1.0.0")
	changed := old.DeepCopy()
	if err := unstructured.SetNestedField(changed.Object, "2.0.0", "spec", "source", "catalog", "version"); err != nil {
		t.Fatal(err)
	}
	if given := ask("extension", mallory, changed, old); given.Refusal == nil || !strings.Contains(given.Refusal.Message, "change ClusterExtensionSet edge") {
		t.Errorf("another user changes a child: %+v", given)
	}
	renewed := signedBy(t, mallory, old.DeepCopy(), 1)
	if given := ask("extension", mallory, renewed, old); given.Refusal == nil || !strings.Contains(given.Refusal.Message, "change ClusterExtensionSet edge") {
		t.Errorf("another user becomes the author of a child: %+v", given)
	}
	// A stamp that another store signed is not valid. The child loses it, and has no author.
	unsigned := old.DeepCopy()
	unsigned.SetAnnotations(map[string]string{extension.SetAnnotation: "edge", extension.AuthorAnnotation: "of another store"})
	free := old.DeepCopy()
	free.SetAnnotations(nil)
	counts := old.DeepCopy()
	counts.SetGeneration(1)
	counts.SetCreationTimestamp(metav1.NewTime(at))
	changedToo := changed.DeepCopy()
	changedToo.SetAnnotations(nil)
	for _, name := range []string{"extension-author", "extension"} {
		if given := ask(name, penstock, free, unsigned); given.Refusal != nil || len(given.Annotations) > 0 {
			t.Errorf("%s: Penstock lets go of a child without a stamp that counts: %+v", name, given)
		}
		for what, refused := range map[string]webhook.Answer{
			"takes away a stamp that counts":       ask(name, penstock, free, counts),
			"changes the spec without a stamp":     ask(name, penstock, changedToo, unsigned),
			"creates an extension without a stamp": ask(name, penstock, free, nil),
		} {
			if refused.Refusal == nil {
				t.Errorf("%s: Penstock %s: %+v", name, what, refused)
			}
		}
	}
	labelled := old.DeepCopy()
	labelled.SetLabels(map[string]string{"a": "b"})
	if given := ask("extension", mallory, labelled, old); given.Refusal == nil || !strings.Contains(given.Refusal.Message, "change ClusterExtensionSet edge") {
		t.Errorf("another user labels a child: %+v", given)
	}
	if given := ask("extension", penstock, labelled, old); given.Refusal != nil {
		t.Errorf("Penstock labels a child: %+v", given)
	}
	kept := old.DeepCopy()
	kept.SetFinalizers([]string{"example.com/kept"})
	kept.SetAnnotations(merged(old.GetAnnotations(), map[string]string{"example.com/note": "x"}))
	if given := ask("extension", mallory, kept, old); given.Refusal != nil {
		t.Errorf("finalizers and annotations of others: %+v", given)
	}
	left := old.DeepCopy()
	unstructured.RemoveNestedField(left.Object, "metadata", "annotations", extension.RolloutAnnotation)
	gone := webhooktest.Review(t, mallory, left, left)
	gone.Operation = admissionv1.Delete
	if given := all["extension-dependents"].Decide(t.Context(), gone); given.Refusal != nil {
		t.Errorf("a child of a cluster that left cannot be deleted: %+v", given)
	}
	deletion := webhooktest.Review(t, mallory, old, old)
	deletion.Operation = admissionv1.Delete
	if given := all["extension-dependents"].Decide(t.Context(), deletion); given.Refusal == nil || !strings.Contains(given.Refusal.Message, "ClusterExtensionSet edge asks for it") {
		t.Errorf("another user deletes a child: %+v", given)
	}
}
