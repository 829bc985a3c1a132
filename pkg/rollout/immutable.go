package rollout

import (
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// remedyImmutable is what a person can do about a field that cannot change.
const remedyImmutable = "the existing object cannot be changed in this way: either delete the object, and it is created as the manifest says, " +
	"or roll out a revision that keeps the field as it is"

// isImmutable recognises the refusal to change a field of an object that exists. It
// judges by the causes alone, each of which is about one field; the message is all of
// them together, values included.
func isImmutable(ref manifest.Ref, err error) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) || answer.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(answer.Status().Details.Causes, func(cause metav1.StatusCause) bool {
		if ref.IsSecret() {
			// The words are taken out of answers about Secrets. Nothing else is
			// forbidden in their data.
			return cause.Type == metav1.CauseTypeForbidden && (cause.Field == "data" || cause.Field == "immutable")
		}
		return saysImmutable(cause)
	})
}

// saysImmutable knows the words of the API's validation: it has no reason of its own
// for it. What stands before the last colon may quote a value, unless there is none.
func saysImmutable(cause metav1.StatusCause) bool {
	said := cause.Message
	switch cause.Type {
	case metav1.CauseTypeForbidden:
	case metav1.CauseTypeFieldValueInvalid:
		said = said[strings.LastIndex(said, ": ")+1:]
	default:
		return false
	}
	return slices.ContainsFunc([]string{
		"immutable",               // Job, Deployment, CustomResourceDefinition, ConfigMap, PersistentVolumeClaim
		"may not change once set", // Service
		"may not change fields",   // Pod
		"updates to statefulset spec for fields other than",
		"cannot change roleRef", // RoleBinding
	}, func(words string) bool { return strings.Contains(said, words) })
}

// makesRoom returns the newer revision that could not make an object what its
// manifest says, and asked for its deletion. Once it is gone the older revision must
// not make it again: it would be back before the newer one could get at it.
func (p *pass) makesRoom(t task) (int64, bool) {
	for li := range t.layer {
		for _, stg := range p.Layers[li].Stages {
			for _, step := range stg.Steps {
				if step.ID == t.step.ID && p.memory.failed[step.Ref].failure.Immutable {
					return p.Layers[li].Revision, true
				}
			}
		}
	}
	return 0, false
}
