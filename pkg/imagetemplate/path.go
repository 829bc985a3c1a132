package imagetemplate

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"k8s.io/client-go/util/jsonpath"
)

// Evaluate returns the string, whole number or boolean at a path in an object, as text. Errors
// quote no content.
//
// It parses the path each time: a parsed path of client-go keeps state after a failed evaluation,
// and is not safe for concurrent use.
func Evaluate(path string, content map[string]any) (value string, err error) {
	// client-go's reflection panics on some comparisons of unexpected types.
	defer func() {
		if recover() != nil {
			value, err = "", errors.New("the path cannot be evaluated on this object")
		}
	}()
	if err := CheckPath(path); err != nil {
		return "", err
	}
	parsed := jsonpath.New("template")
	if err := parsed.Parse(path); err != nil {
		return "", errors.New("the path is not a JSON path that client-go accepts")
	}
	results, err := parsed.FindResults(content)
	if err != nil {
		return "", errors.New("the path leads to nothing in this object")
	}
	var found []reflect.Value
	for _, one := range results {
		found = append(found, one...)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("the path leads to %d values, and exactly 1 is expected", len(found))
	}
	return scalar(found[0])
}

// scalar returns a value as text. It refuses floats, because 4.10 is read as 4.1.
func scalar(found reflect.Value) (string, error) {
	for found.IsValid() && found.Kind() == reflect.Interface {
		found = found.Elem()
	}
	if !found.IsValid() {
		return "", errors.New("the path leads to null")
	}
	switch found.Kind() {
	case reflect.String:
		return found.String(), nil
	case reflect.Bool:
		return strconv.FormatBool(found.Bool()), nil
	case reflect.Int, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(found.Int(), 10), nil
	default:
		return "", fmt.Errorf("the path leads to a %s, and a string, a whole number or a boolean is expected", found.Kind())
	}
}

// CheckPath refuses a path that selects no field, or whose cost is not bounded by the size of the
// object. It refuses recursive descent, unions (which double at each step), nested filters, loops
// and text.
func CheckPath(path string) error {
	if len(path) > MaxPath {
		return fmt.Errorf("a path may have at most %d bytes", MaxPath)
	}
	parsed, err := jsonpath.Parse("template", path)
	if err != nil {
		return errors.New("the path is not a JSON path that client-go accepts")
	}
	if len(parsed.Root.Nodes) != 1 {
		return errors.New("a path must be one pair of braces")
	}
	braces, is := parsed.Root.Nodes[0].(*jsonpath.ListNode)
	if !is || len(braces.Nodes) == 0 {
		return errors.New("a path must name a field")
	}
	return checkNodes(braces.Nodes, false)
}

func checkNodes(nodes []jsonpath.Node, inFilter bool) error {
	for _, node := range nodes {
		switch one := node.(type) {
		case *jsonpath.FieldNode, *jsonpath.ArrayNode, *jsonpath.WildcardNode:
		case *jsonpath.IntNode, *jsonpath.FloatNode, *jsonpath.BoolNode, *jsonpath.TextNode:
			if !inFilter {
				return errors.New("a path must name a field, not text or a number")
			}
		case *jsonpath.ListNode:
			if err := checkNodes(one.Nodes, inFilter); err != nil {
				return err
			}
		case *jsonpath.FilterNode:
			if inFilter {
				return errors.New("a filter of a path must not contain another filter")
			}
			for _, side := range []*jsonpath.ListNode{one.Left, one.Right} {
				if side == nil {
					continue
				}
				if err := checkNodes(side.Nodes, true); err != nil {
					return err
				}
			}
		default:
			return errors.New("a path must not contain .., unions, range or end")
		}
	}
	return nil
}
