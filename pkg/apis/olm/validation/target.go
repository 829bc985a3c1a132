package validation

import (
	"fmt"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func validateTarget(target *olm.TargetReference, path *field.Path) field.ErrorList {
	switch {
	case target == nil:
		return nil
	case target.Name == "":
		return field.ErrorList{field.Required(path, "the name of a Secret with a kubeconfig, in the namespace of Penstock")}
	case target.Name == v1alpha1.DefaultTarget:
		return field.ErrorList{field.Invalid(path, target.Name,
			"means the cluster of --target-kubeconfig in RBAC rules: give the Secret another name, or leave spec.targetRef out to use that cluster")}
	}
	var errs field.ErrorList
	for _, problem := range apivalidation.NameIsDNSSubdomain(target.Name, false) {
		errs = append(errs, field.Invalid(path, target.Name, problem))
	}
	return errs
}

// ValidateTargetOfChain refuses a new revision whose target differs from the other revisions of its
// chain. Their objects are in one cluster, and belong to the chain until they are deleted.
func ValidateTargetOfChain(revision *olm.ClusterExtensionRevision, others []olm.ClusterExtensionRevision) field.ErrorList {
	for i := range others {
		if other := &others[i]; other.Name != revision.Name && other.Target() != revision.Target() {
			return field.ErrorList{field.Invalid(field.NewPath("spec", "targetRef", "name"), revision.Target(), fmt.Sprintf(
				"must be %q, as in %s: all revisions of an extension are rolled out into one cluster; to change it, delete the existing revisions first", other.Target(), other.Name))}
		}
	}
	return nil
}
