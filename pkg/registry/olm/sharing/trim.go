package sharing

import (
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// trim minimizes the memory of a decoded revision, except its phases' lists of objects. A decoder
// allocates a string for each word, and lists with spare capacity. Words that thousands of
// revisions share are kept once. The revision's own strings are moved into one allocation:
// scattered small strings would keep garbage between them from being freed.
//
// The revision still owns its lists and maps.
func trim(revision *olm.ClusterExtensionRevision) {
	trimMeta(&revision.ObjectMeta)
	trimSpec(&revision.Spec)
	trimStatus(&revision.Status)
	together(own(revision))
}

// own returns the strings that probably no other revision has.
func own(revision *olm.ClusterExtensionRevision) []*string {
	words := []*string{&revision.Name, (*string)(&revision.UID)}
	for i := range revision.Spec.Previous {
		previous := &revision.Spec.Previous[i]
		words = append(words, &previous.Name, (*string)(&previous.UID))
	}
	return words
}

func trimSpec(spec *olm.ClusterExtensionRevisionSpec) {
	spec.Previous, spec.Phases = exact(spec.Previous), exact(spec.Phases)
	intern(&spec.LifecycleState)
	intern(&spec.CollisionProtection)
	intern(&spec.OnFailure)
	intern(&spec.TeardownPolicy)
	intern(&spec.AdoptedTeardownPolicy)
	for i := range spec.Phases {
		intern(&spec.Phases[i].Name)
		intern(&spec.Phases[i].CollisionProtection)
	}
}

func trimMeta(meta *metav1.ObjectMeta) {
	meta.Labels, meta.Annotations = trimMap(meta.Labels), trimMap(meta.Annotations)
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

// trimMap returns an equal map with shared strings. Most names and values are the same in all
// revisions of a chain.
func trimMap(words map[string]string) map[string]string {
	if len(words) == 0 {
		return words
	}
	trimmed := make(map[string]string, len(words))
	for name, value := range words {
		trimmed[interned(name)] = interned(value)
	}
	return trimmed
}

func trimStatus(status *olm.ClusterExtensionRevisionStatus) {
	if requester := status.RequestedBy; requester != nil {
		intern(&requester.Username)
		intern(&requester.UID)
		requester.Groups = exact(requester.Groups)
		for i := range requester.Groups {
			intern(&requester.Groups[i])
		}
		for name, values := range requester.Extra {
			requester.Extra[name] = exact(values)
			for i := range values {
				intern(&requester.Extra[name][i])
			}
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

func exact[T any](list []T) []T {
	if cap(list) == len(list) {
		return list
	}
	return slices.Clip(slices.Clone(list))
}

// intern replaces a string by the shared copy.
func intern[S ~string](s *S) { *s = S(interned(string(*s))) }

// interned returns the shared copy of a string. A garbage collection can drop the copy; the next
// call then creates a new copy.
func interned(s string) string {
	if s == "" {
		return s
	}
	return unique.Make(s).Value()
}

func together(words []*string) {
	size := 0
	for _, word := range words {
		size += len(*word)
	}
	var text strings.Builder
	text.Grow(size)
	for _, word := range words {
		start := text.Len()
		_, _ = text.WriteString(*word)
		*word = text.String()[start:]
	}
}
