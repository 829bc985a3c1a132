package maintenancewindow

import (
	"context"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
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
