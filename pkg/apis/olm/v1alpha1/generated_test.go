package v1alpha1_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	applyolm "github.com/penstock-project/penstock/pkg/generated/applyconfiguration/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/fake"
	"github.com/penstock-project/penstock/pkg/generated/informers/externalversions"
	"github.com/penstock-project/penstock/pkg/generated/openapi"
)

// Extract needs the schema of our types. If the generator does not find the schema, every type is
// untyped, and Extract returns a keyed list whole.
func TestExtractKnowsKeyedLists(t *testing.T) {
	revision := &v1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: "argocd-1", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: "me", Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: v1alpha1.SchemeGroupVersion.String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:phases":{"k:{\"name\":\"b\"}":{".":{},"f:name":{},"f:objects":{}}}}}`),
		}}},
		Spec: v1alpha1.ClusterExtensionRevisionSpec{Revision: 1, Phases: []v1alpha1.RevisionPhase{
			{Name: "a", Objects: []v1alpha1.RevisionObject{{Name: "not-mine"}}},
			{Name: "b", Objects: []v1alpha1.RevisionObject{{Name: "mine"}}},
		}},
	}
	extracted, err := applyolm.ExtractClusterExtensionRevision(revision, "me")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(extracted.Spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"phases":[{"name":"b","objects":[{"name":"mine"}]}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("spec that me applied (-want +got):\n%s", diff)
	}
}

func TestFakeApply(t *testing.T) {
	ctx := context.Background()
	revisions := fake.NewClientset().OlmV1alpha1().ClusterExtensionRevisions()
	wanted := applyolm.ClusterExtensionRevision("argocd-1").WithSpec(applyolm.ClusterExtensionRevisionSpec().
		WithRevision(1).
		WithPhases(applyolm.RevisionPhase().WithName("a").WithObjects(applyolm.RevisionObject().
			WithObject(v1alpha1.Manifest{Raw: []byte(`{"kind":"ConfigMap"}`)}))))
	got, err := revisions.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "me"})
	if err != nil {
		t.Fatal(err)
	}
	want := []v1alpha1.RevisionPhase{{Name: "a", Objects: []v1alpha1.RevisionObject{
		{Object: &v1alpha1.Manifest{Raw: []byte(`{"kind":"ConfigMap"}`)}},
	}}}
	if diff := cmp.Diff(want, got.Spec.Phases); diff != "" {
		t.Errorf("applied phases (-want +got):\n%s", diff)
	}
}

func TestInformer(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	client := fake.NewClientset(&v1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: "argocd-1"}})
	factory := externalversions.NewSharedInformerFactory(client, 0)
	informer := factory.Olm().V1alpha1().ClusterExtensionRevisions()
	synced := informer.Informer().HasSynced
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("the informer did not sync within 30 seconds")
	}
	if _, err := informer.Lister().Get("argocd-1"); err != nil {
		t.Errorf("reading from the lister: %v", err)
	}
	cancel()
	factory.Shutdown()
}

func TestOpenAPI(t *testing.T) {
	definitions := openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef("#/definitions/" + name) })
	const prefix = "com.github.penstock-project.penstock.pkg.apis.olm.v1alpha1."

	manifest, found := definitions[prefix+"Manifest"]
	if !found {
		t.Fatalf("no definition of %sManifest", prefix)
	}
	if keeps, _ := manifest.Schema.Extensions.GetBool("x-kubernetes-preserve-unknown-fields"); !keeps {
		t.Error("Manifest: fields would be unknown to strict decoding and structured merge")
	}
	if length := len(manifest.Schema.Description); length == 0 || length > 100 {
		t.Errorf("Manifest: %d characters of description, kubectl explain should say one line", length)
	}

	properties := definitions[prefix+"ClusterExtensionRevisionSpec"].Schema.Properties
	got := map[string]any{}
	for _, name := range []string{"lifecycleState", "collisionProtection", "teardownPolicy", "adoptedTeardownPolicy"} {
		got[name] = properties[name].Default
	}
	want := map[string]any{"lifecycleState": "Active", "collisionProtection": "Prevent", "teardownPolicy": "Delete", "adoptedTeardownPolicy": "Orphan"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	for name, property := range properties {
		if property.Description == "" {
			t.Errorf("spec.%s: kubectl explain has nothing to say", name)
		}
	}
}
