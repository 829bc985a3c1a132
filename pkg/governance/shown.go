package governance

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

// Placeholders for redacted values.
const (
	// hiddenNow replaces a present value of the target.
	hiddenNow = redact.Hidden
	// hiddenNext replaces a new value of the target.
	hiddenNext = redact.Hidden + " (another value)"
	// hiddenOrder replaces a list with the same items in a new order.
	hiddenOrder = redact.Hidden + " (in another order)"
)

// Shown reduces a change of a target to the part that every reader of the plan may see. It is in the
// status of the plan, and a reader of the plan may have no right to read the targets. It returns the
// objects to compare in place of before and after:
//
//   - It keeps the changed fields and drops unchanged fields.
//   - It hides values of the target, including removed values.
//   - It shows a new value if the intent sets the value and the target did not have it. Items of
//     lists that stay are hidden.
//
// A nil object means that the target does not exist. A nil intent shows no value, as for a plan that
// restores an earlier state.
func Shown(before, after, intent *manifest.Object) (*manifest.Object, *manifest.Object, error) {
	var trees [3]map[string]any
	for i, object := range []*manifest.Object{before, after, intent} {
		if object == nil {
			continue
		}
		content := &unstructured.Unstructured{}
		if err := content.UnmarshalJSON(object.JSON); err != nil {
			return nil, nil, err
		}
		trees[i] = content.Object
	}
	was, is := shownFields(trees[0], trees[1], trees[2])
	old, err := named(before, was)
	if err != nil {
		return nil, nil, err
	}
	next, err := named(after, is)
	return old, next, err
}

// named adds the identity of an object to the fields that are shown. The identity is never hidden.
func named(object *manifest.Object, shown map[string]any) (*manifest.Object, error) {
	if object == nil {
		return nil, nil
	}
	metadata, _ := shown["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	shown["apiVersion"], shown["kind"], shown["metadata"] = object.APIVersion(), object.Kind, metadata
	metadata["name"] = object.Name
	if object.Namespace != "" {
		metadata["namespace"] = object.Namespace
	}
	made, err := manifest.Digester{}.New(shown)
	if err != nil {
		return nil, err
	}
	return &made, nil
}

// shownFields does the same as Shown for the fields of an object.
func shownFields(before, after, intent map[string]any) (was, is map[string]any) {
	was, is = map[string]any{}, map[string]any{}
	for key, old := range before {
		next, stays := after[key]
		switch {
		case !stays:
			was[key] = intended(old, nil, hiddenNow)
		case !reflect.DeepEqual(old, next):
			was[key], is[key] = shownValue(old, next, intent[key])
		}
	}
	for key, next := range after {
		if _, had := before[key]; !had {
			is[key] = intended(next, intent[key], hiddenNow)
		}
	}
	return was, is
}

// shownValue does the same as Shown for a value that changes.
func shownValue(old, next, intent any) (was, is any) {
	if fields, isMap := old.(map[string]any); isMap {
		if nextFields, stays := next.(map[string]any); stays {
			wanted, _ := intent.(map[string]any)
			return both(shownFields(fields, nextFields, wanted))
		}
	}
	if items, isList := old.([]any); isList {
		if nextItems, stays := next.([]any); stays {
			wanted, _ := intent.([]any)
			return shownItems(items, nextItems, wanted)
		}
	}
	return intended(old, nil, hiddenNow), intended(next, intent, hiddenNext)
}

func both(was, is map[string]any) (any, any) { return was, is }

// shownItems does the same as Shown for a list, item by item.
func shownItems(old, next, intent []any) (was, is any) {
	hidden, items := make([]any, len(old)), make([]any, len(next))
	for i := range old {
		hidden[i] = hiddenNow
	}
	for i, item := range next {
		switch {
		case contains(old, item):
			items[i] = hiddenNow
		case contains(intent, item):
			items[i] = item
		default:
			items[i] = hiddenNext
		}
	}
	if reflect.DeepEqual(hidden, items) {
		return hiddenNow, hiddenOrder
	}
	return hidden, items
}

// intended returns the parts of a value that the intent sets. It hides the parts that the server
// added or changed.
func intended(value, intent any, hidden string) any {
	switch value := value.(type) {
	case map[string]any:
		wanted, _ := intent.(map[string]any)
		fields := make(map[string]any, len(value))
		for key, field := range value {
			fields[key] = intended(field, wanted[key], hidden)
		}
		return fields
	case []any:
		wanted, isList := intent.([]any)
		if !isList {
			return hidden
		}
		items := make([]any, len(value))
		for i, item := range value {
			if items[i] = item; !contains(wanted, item) {
				items[i] = hidden
			}
		}
		return items
	default:
		if reflect.DeepEqual(value, intent) {
			return value
		}
		return hidden
	}
}

func contains(items []any, item any) bool {
	return slices.ContainsFunc(items, func(other any) bool { return reflect.DeepEqual(other, item) })
}
