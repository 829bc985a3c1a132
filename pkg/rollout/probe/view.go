package probe

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/text"
)

// view reads an object with any content. It keeps the first error; the caller checks err after all
// reads.
type view struct {
	object map[string]any
	// evaluation is for judges that evaluate expressions.
	evaluation
	// secret hides values (see secret.go).
	secret bool
	err    error
}

// get returns the value at a path. An absent field and null are the same.
func (v *view) get(path ...string) (any, bool) {
	if v.secret && secretContent(path) {
		v.fail("%s: the content of a Secret is not read", strings.Join(path, "."))
		return nil, false
	}
	var value any = v.object
	for i, part := range path {
		object, isObject := value.(map[string]any)
		if !isObject {
			v.fail("%s is %s, not an object", strings.Join(path[:i], "."), typeName(value))
			return nil, false
		}
		value = object[part]
		if value == nil {
			return nil, false
		}
	}
	return value, true
}

// number returns an integer, or the default if the field is absent.
func (v *view) number(absent int64, path ...string) int64 {
	value, found := v.get(path...)
	if !found {
		return absent
	}
	switch n := value.(type) {
	case int64:
		return n
	case float64:
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n)
		}
	}
	v.fail("%s is %s, not a whole number", strings.Join(path, "."), typeName(value))
	return absent
}

// text returns a string, or "" if the field is absent.
func (v *view) text(path ...string) string {
	value, found := v.get(path...)
	if !found {
		return ""
	}
	text, isText := value.(string)
	if !isText {
		v.fail("%s is %s, not text", strings.Join(path, "."), typeName(value))
	}
	return text
}

// flag returns a boolean, or false if the field is absent.
func (v *view) flag(path ...string) bool {
	value, found := v.get(path...)
	if !found {
		return false
	}
	flag, isFlag := value.(bool)
	if !isFlag {
		v.fail("%s is %s, not a boolean", strings.Join(path, "."), typeName(value))
	}
	return flag
}

// objects returns the elements of a list of objects, each with its own view. adopt collects their
// errors.
func (v *view) objects(path ...string) []*view {
	value, found := v.get(path...)
	if !found {
		return nil
	}
	list, isList := value.([]any)
	if !isList {
		v.fail("%s is %s, not a list", strings.Join(path, "."), typeName(value))
		return nil
	}
	views := make([]*view, 0, len(list))
	for i, element := range list {
		object, isObject := element.(map[string]any)
		if !isObject {
			v.fail("%s[%d] is %s, not an object", strings.Join(path, "."), i, typeName(element))
			return nil
		}
		views = append(views, &view{object: object, secret: v.secret})
	}
	return views
}

// adopt takes over the error of an element of a list.
func (v *view) adopt(element *view, name string) {
	if element.err != nil {
		v.fail("%s: %w", name, element.err)
	}
}

// ask gives a judge its own view of the same object, so that a read error of one judge does not
// change the verdict of another.
func (v *view) ask(j judge) Verdict {
	own := &view{object: v.object, secret: v.secret, evaluation: v.evaluation}
	verdict := j.judge(own)
	if own.err != nil {
		return unknown("%s", quote(own.err.Error()))
	}
	return verdict
}

// labels returns the object's labels. If they cannot be read, the verdict becomes Unknown, because
// the selection is unknown.
func (v *view) labels() labels.Set {
	value, found := v.get("metadata", "labels")
	if !found {
		return nil
	}
	object, isObject := value.(map[string]any)
	if !isObject {
		v.fail("metadata.labels is %s, not an object", typeName(value))
		return nil
	}
	set := labels.Set{}
	for key, value := range object {
		text, isText := value.(string)
		if !isText {
			v.fail("metadata.labels has a value that is not text")
			return nil
		}
		set[key] = text
	}
	return set
}

func (v *view) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
}

// stale returns a message if the object's controller has not observed the newest generation;
// otherwise "".
func (v *view) stale() string {
	generation := v.number(0, "metadata", "generation")
	switch seen := v.number(0, "status", "observedGeneration"); {
	case seen == 0:
		return "its controller has not reported a status yet"
	case seen < generation:
		return fmt.Sprintf("its controller has not seen generation %d yet (its status is of generation %d)", generation, seen)
	}
	return ""
}

// show returns a value for a message: its JSON form, shortened, or a placeholder if the value may
// be secret.
func (v *view) show(value any) string {
	if v.secret {
		return "(hidden)"
	}
	switch value.(type) {
	case map[string]any, []any:
		return typeName(value)
	}
	form, err := jsonForm(value)
	if err != nil {
		return typeName(value)
	}
	return text.Clip(clean(form), maxValueBytes)
}

// jsonForm returns a scalar as JSON, without the escapes for HTML.
func jsonForm(value any) (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("rendering %s: %w", typeName(value), err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "of an unknown type"
}
