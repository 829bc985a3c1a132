package accepted

import (
	"maps"
	"math"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selection "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// workload is of pods that follow a template; some kinds have fields of their own beside it.
func workload(more map[string]rule) object {
	pod := object{fields: map[string]rule{"containers": containers, "initContainers": containers}}
	template := object{fields: map[string]rule{"metadata": metadata, "spec": pod.judge}}
	spec := object{fields: map[string]rule{"template": template.judge}, whole: selected}
	maps.Copy(spec.fields, more)
	return object{fields: map[string]rule{"metadata": metadata, "spec": spec.judge}}
}

// selected checks that the selector, which has not changed, selects the pods of the template.
func selected(j *judgement, path string, before, after map[string]any) {
	path += ".template.metadata.labels"
	labels := labelsOfPods(after)
	if same(labelsOfPods(before), labels) {
		return
	}
	pods, ok := stringsOf(labels)
	selector, is := membersOf(member(after, "selector"))
	if !ok || !is {
		j.unknown(path, "the selector or the labels cannot be read")
		return
	}
	var typed metav1.LabelSelector
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &typed)
	if err != nil {
		j.unknown(path, "the selector cannot be read")
		return
	}
	selects, err := metav1.LabelSelectorAsSelector(&typed)
	if err != nil || selects.Empty() || !selects.Matches(selection.Set(pods)) {
		j.unknown(path, "the selector does not select them")
	}
}

func labelsOfPods(spec map[string]any) any {
	template, _ := membersOf(member(spec, "template"))
	metadata, _ := membersOf(member(template, "metadata"))
	return member(metadata, "labels")
}

// replicas are a number that is not negative.
func replicas(j *judgement, path string, _, after any) {
	if number, is := after.(int64); !is || number < 0 || number > math.MaxInt32 {
		j.unknown(path, "is no number of replicas")
	}
}

// containers that are the same ones in the same order.
func containers(j *judgement, path string, before, after any) {
	was, ok := before.([]any)
	is, also := after.([]any)
	if !ok || !also || len(was) != len(is) {
		j.unknown(path, "containers are added or removed")
		return
	}
	one := object{fields: map[string]rule{"image": image, "command": words, "args": words, "env": environment}}
	for i := range is {
		at := path + "[" + strconv.Itoa(i) + "]"
		if name, found := nameOf(was[i]); !found || !isNamed(is[i], name) {
			j.unknown(at, "the containers have other names or another order")
			return
		}
		one.judge(j, at, was[i], is[i])
	}
}

func nameOf(value any) (string, bool) {
	members, _ := membersOf(value)
	name, is := members["name"].(string)
	return name, is
}

func isNamed(value any, name string) bool {
	other, found := nameOf(value)
	return found && other == name
}

// image is a reference, of which the server checks nothing but that there is one. Some
// distributions resolve and check it.
func image(j *judgement, path string, _, after any) {
	j.Images = true
	if reference, is := after.(string); !is || reference == "" || strings.TrimSpace(reference) != reference {
		j.unknown(path, "is no reference of an image")
	}
}

// words are a command or its arguments, or none.
func words(j *judgement, path string, _, after any) {
	if after != (any)(absent{}) && !isWords(after) {
		j.unknown(path, "is no list of strings")
	}
}

// environment is a list of variables. Those that differ have a value, before and after: what a
// valueFrom may say, and what the server adds to it, is not judged.
func environment(j *judgement, path string, before, after any) {
	was, ok := variables(before)
	is, also := variables(after)
	if !ok || !also {
		j.unknown(path, "is no list of variables with names that occur once")
		return
	}
	for name, variable := range is {
		old, both := was[name]
		if both && same(old, variable) {
			continue
		}
		if both && !isPlain(old) || !isPlain(variable) || len(validation.IsEnvVarName(name)) > 0 {
			j.unknown(path, "a variable that changes is not just a name and a value")
		}
	}
	for name, variable := range was {
		if _, both := is[name]; !both && !isPlain(variable) {
			j.unknown(path, "a variable that goes is not just a name and a value")
		}
	}
}

// variables by name.
func variables(value any) (map[string]any, bool) {
	if value == (absent{}) {
		return nil, true
	}
	list, is := value.([]any)
	if !is {
		return nil, false
	}
	byName := make(map[string]any, len(list))
	for _, one := range list {
		name, found := nameOf(one)
		if _, twice := byName[name]; !found || twice {
			return nil, false
		}
		byName[name] = one
	}
	return byName, true
}

// isPlain is true for a variable with nothing but a name and, perhaps, a value.
func isPlain(value any) bool {
	all, ok := stringsOf(value)
	for field := range all {
		if field != "name" && field != "value" {
			return false
		}
	}
	return ok
}
