package clusterextensionrevision

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// The endpoint merges and compares lists with keys before it validates and checks the requester's
// rights. The time grows with the square of their length. So the number of elements in a body is
// bounded here, for every encoding.

// maxKeyed bounds lists with keys that have no limit in the API.
const maxKeyed = 256

// amount bounds the number of elements of a list, summed over all places with its path.
type amount struct {
	path []string
	most int
	// says is the message of the refusal, with a placeholder for most.
	says string
}

// amounts returns the bounded lists of Penstock's kinds. A path that passes through a list follows
// every element.
func amounts() []amount {
	return []amount{
		{[]string{"spec", "phases"}, v1alpha1.MaxPhases, "a revision has at most %d phases"},
		{[]string{"spec", "phases", "objects"}, v1alpha1.MaxObjects, "a revision has at most %d objects"},
		{[]string{"spec", "progressionProbes"}, v1alpha1.MaxProgressionProbes, "a revision has at most %d progression probes"},
		{[]string{"spec", "progressionProbes", "assertions"}, v1alpha1.MaxAssertions, "a revision has at most %d assertions in all"},
		{[]string{"spec", "yield"}, v1alpha1.MaxYieldRules, "a revision has at most %d rules of fields that are yielded"},
		{[]string{"spec", "previous"}, maxKeyed, "a revision names at most %d previous ones"},
		{[]string{"status", "phases"}, maxKeyed, "at most %d phases in status are allowed"},
		{[]string{"status", "items"}, maxKeyed, "at most %d items in status are allowed"},
		{[]string{"status", "conditions"}, maxKeyed, "at most %d conditions are allowed"},
		{[]string{"metadata", "finalizers"}, maxKeyed, "at most %d finalizers are allowed"},
		{[]string{"metadata", "ownerReferences"}, maxKeyed, "at most %d owner references are allowed"},
	}
}

// hasLists reports whether the lists of a write are bounded. It is true for all of Penstock's
// kinds.
func hasLists(info *request.RequestInfo) bool {
	return info.IsResourceRequest && (info.APIGroup == olm.GroupName || info.APIGroup == hco.GroupName) &&
		(info.Verb == "create" || info.Verb == "update" || info.Verb == "patch")
}

func checkAmounts(info *request.RequestInfo, body any) error {
	return refuseAmounts(info, nameIn(info, body), func(errs *field.ErrorList) {
		for _, a := range amounts() {
			if n := count(body, a.path); n > a.most {
				*errs = append(*errs, a.exceeded(n))
			}
		}
	})
}

func (a amount) exceeded(n int) *field.Error {
	err := field.TooMany(field.NewPath(a.path[0], a.path[1:]...), n, a.most)
	err.Detail = fmt.Sprintf(a.says, a.most)
	return err
}

// nameIn returns the name of the object that a body is written to. In a create, the name is only in
// the body.
func nameIn(info *request.RequestInfo, body any) string {
	if info.Name != "" {
		return info.Name
	}
	object, _ := body.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return name
}

func refuseAmounts(info *request.RequestInfo, name string, check func(*field.ErrorList)) error {
	var errs field.ErrorList
	if check(&errs); len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(kindOf(info), name, errs)
}

func kindOf(info *request.RequestInfo) schema.GroupKind {
	switch {
	case info.APIGroup == olm.GroupName && info.Resource == resource:
		return olm.Kind("ClusterExtensionRevision")
	case info.APIGroup == hco.GroupName && info.Resource == "configurationplans":
		return hco.Kind("ConfigurationPlan")
	default:
		return schema.GroupKind{Group: info.APIGroup, Kind: info.Resource}
	}
}

// count returns the number of elements at a path. The directives of a strategic merge patch for a
// list, such as $setElementOrder/phases, count as that list.
func count(body any, path []string) int {
	if list, isList := body.([]any); isList {
		if len(path) == 0 {
			return len(list)
		}
		n := 0
		for _, element := range list {
			n += count(element, path)
		}
		return n
	}
	object, isObject := body.(map[string]any)
	if !isObject || len(path) == 0 {
		return 0
	}
	n := 0
	for name, value := range object {
		if name == path[0] || strings.HasPrefix(name, "$") && strings.HasSuffix(name, "/"+path[0]) {
			n += count(value, path[1:])
		}
	}
	return n
}

// checkPatchAmounts works like checkAmounts, for the operations of a JSON patch. It counts the
// elements in their values, and the operations that add an element to the same list. An operation
// must not copy or move an existing value to a bounded list, because its length is unknown.
func checkPatchAmounts(info *request.RequestInfo, operations []map[string]any) error {
	return refuseAmounts(info, info.Name, func(errs *field.ErrorList) {
		for _, a := range amounts() {
			added := 0
			for _, operation := range operations {
				n, err := a.added(operation)
				if err != nil {
					*errs = append(*errs, err)
					return
				}
				added += n
			}
			if added > a.most {
				*errs = append(*errs, a.exceeded(added))
			}
		}
	})
}

// added returns how many elements an operation adds to the list.
func (a amount) added(operation map[string]any) (int, *field.Error) {
	path, element := namesOf(operation["path"])
	kind := operation["op"]
	switch {
	case kind == "test" || kind == "remove":
		return 0, nil
	case element && slices.Equal(path, a.path):
		return 1, nil
	case len(path) > len(a.path) || !slices.Equal(path, a.path[:len(path)]):
		return 0, nil // another path, or inside an element
	case kind == "add" || kind == "replace":
		return count(operation["value"], a.path[len(path):]), nil
	default:
		return 0, field.Invalid(field.NewPath(a.path[0], a.path[1:]...), operation["path"],
			fmt.Sprintf("%v puts a list of unknown length at this path: add or replace it by value", kind))
	}
}

// namesOf returns the field names in a JSON pointer, without list indices. element is true if the
// pointer ends at an index. The libraries that apply patches ignore the part before the first
// slash.
func namesOf(pointer any) (names []string, element bool) {
	text, _ := pointer.(string)
	for i, part := range strings.Split(text, "/") {
		if i == 0 {
			continue
		}
		_, err := strconv.Atoi(part)
		if element = part == "-" || err == nil; !element {
			names = append(names, part)
		}
	}
	return names, element
}
