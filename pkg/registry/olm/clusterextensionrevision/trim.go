package clusterextensionrevision

import (
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// trim makes a revision that was just decoded as small as it gets, but for what its
// phases list: a decoder makes a string of its own of each word, and lists that have
// room for more. Words that thousands of revisions have in common are there once.
// Lists and maps are the revision's own afterwards, as before.
func trim(revision *olm.ClusterExtensionRevision) {
	trimMeta(&revision.ObjectMeta)
	spec := &revision.Spec
	spec.Previous, spec.Phases = exact(spec.Previous), exact(spec.Phases)
	intern(&spec.LifecycleState)
	intern(&spec.CollisionProtection)
	intern(&spec.OnFailure)
	intern(&spec.TeardownPolicy)
	for i := range spec.Phases {
		intern(&spec.Phases[i].Name)
		intern(&spec.Phases[i].CollisionProtection)
	}
	trimStatus(&revision.Status)
}

func trimMeta(meta *metav1.ObjectMeta) {
	for name, value := range meta.Labels {
		meta.Labels[name] = interned(value)
	}
	meta.Finalizers = exact(meta.Finalizers)
	for i := range meta.Finalizers {
		intern(&meta.Finalizers[i])
	}
	meta.ManagedFields = exact(meta.ManagedFields)
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		intern(&entry.Manager)
		intern(&entry.Operation)
		intern(&entry.APIVersion)
		intern(&entry.FieldsType)
		intern(&entry.Subresource)
	}
}

func trimStatus(status *olm.ClusterExtensionRevisionStatus) {
	if requester := status.RequestedBy; requester != nil {
		intern(&requester.Username)
		intern(&requester.UID)
		requester.Groups = exact(requester.Groups)
		for i := range requester.Groups {
			intern(&requester.Groups[i])
		}
	}
	status.Conditions = exact(status.Conditions)
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		intern(&condition.Type)
		intern(&condition.Status)
		intern(&condition.Reason)
		intern(&condition.Message)
	}
	status.Phases = exact(status.Phases)
	for i := range status.Phases {
		intern(&status.Phases[i].Name)
		intern(&status.Phases[i].State)
	}
}

// exact returns a list that has no room for more.
func exact[T any](list []T) []T {
	if cap(list) == len(list) {
		return list
	}
	return slices.Clip(slices.Clone(list))
}

// intern makes a string the one copy of it.
func intern[S ~string](s *S) { *s = S(interned(string(*s))) }

// interned is the one copy of a string. It is held as long as somebody has it.
func interned(s string) string {
	if s == "" {
		return s
	}
	return unique.Make(s).Value()
}
