package privilege

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// maxScopeErrors bounds the objects that one answer names.
const maxScopeErrors = 10

// scopeError reports objects with a namespace whose kinds are cluster-scoped.
type scopeError struct{ fields field.ErrorList }

func (e *scopeError) Error() string { return e.fields.ToAggregate().Error() }

// checkScopes refuses objects of the request that have a namespace although their kind is
// cluster-scoped. The API server would refuse them later. Also, an object that was checked in one
// namespace must never be written in the whole cluster. For a kind that is still unknown, the
// engine checks the scope before each write.
func checkScopes(c change, k *kinds) error {
	if !c.brings(c.revision) {
		return nil
	}
	var errs field.ErrorList
	at := field.NewPath("spec", "phases")
	eachRefAt(c.revision, func(phase, index int, _ *olm.RevisionObject, ref manifest.Ref) {
		found, known := k.find(ref)
		if !known || found.namespaced || ref.Namespace == "" || len(errs) == maxScopeErrors {
			return
		}
		errs = append(errs, field.Invalid(at.Index(phase).Child("objects").Index(index).Child("namespace"), ref.Namespace,
			fmt.Sprintf("%s is cluster-scoped: the manifest must have no metadata.namespace", ref.ID.GroupKind())))
	})
	if len(errs) > 0 {
		return &scopeError{errs}
	}
	return nil
}
