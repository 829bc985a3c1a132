package registration

import (
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
)

// TestDefinitionsAreValid: kube-apiserver accepts each definition, and each definition has its
// kind.
func TestDefinitionsAreValid(t *testing.T) {
	for _, d := range Definitions() {
		t.Run(d.Kind, func(t *testing.T) {
			read, err := d.Decode()
			if err != nil {
				t.Fatal(err)
			}
			apiextensionsv1.SetDefaults_CustomResourceDefinition(read)
			apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&read.Spec)
			definition := &apiextensions.CustomResourceDefinition{}
			if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(read, definition, nil); err != nil {
				t.Fatal(err)
			}
			definition.Status.StoredVersions = []string{d.Resource.Version}
			if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), definition); len(errs) > 0 {
				t.Errorf("kube-apiserver would refuse it: %v", errs.ToAggregate())
			}
			if definition.Name != d.Name || definition.Spec.Group != d.Resource.Group || definition.Spec.Names.Plural != d.Resource.Resource || definition.Spec.Names.Kind != d.Kind {
				t.Errorf("the definition is that of %s", definition.Name)
			}
		})
	}
}
