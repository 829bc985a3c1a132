package chartkind

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDefinition(t *testing.T) {
	read, err := Definition().Decode()
	if err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(read)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&read.Spec)
	definition := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(read, definition, nil); err != nil {
		t.Fatal(err)
	}
	definition.Status.StoredVersions = []string{Resource.Version}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), definition); len(errs) > 0 {
		t.Errorf("kube-apiserver would refuse it: %v", errs.ToAggregate())
	}
	if definition.Name != DefinitionName || definition.Spec.Group != Resource.Group || definition.Spec.Names.Plural != Resource.Resource || definition.Spec.Names.Kind != Kind.Kind {
		t.Errorf("the definition is that of %s", definition.Name)
	}
}

// What is read of a ChartKind is what is written, numbers included.
func TestFrom(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.Object = map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{
		"resource": map[string]any{"group": "g.example.com", "version": "v1", "kind": "Lamp"}, "overrides": map[string]any{"n": int64(3)},
	}}
	kind, err := From(object)
	if err != nil || kind.Spec.Overrides["n"] != 3.0 || kind.Spec.Resource.GVR().Resource != "lamps" {
		t.Errorf("%+v %v", kind, err)
	}
}
