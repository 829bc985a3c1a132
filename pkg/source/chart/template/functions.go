package template

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

// maxAttempts limits the attempts to generate a value that differs from the previous one.
const maxAttempts = 1000

// functions replaces template functions whose result differs at each rendering. They fail, or their
// calls are recorded.
type functions struct {
	generate bool
	known    []map[string]any
	// first are the generated values of the first rendering, in order. made counts the values of
	// the current rendering.
	first [][]reflect.Value
	made  int
	twice bool
}

func newFunctions(request Request) *functions {
	return &functions{generate: request.Generate, known: request.Known}
}

func (f *functions) again() { f.made, f.twice = 0, true }

func generators(name string) bool {
	switch name {
	case "uuidv4", "bcrypt", "htpasswd", "encryptAES":
		return true
	}
	return strings.HasPrefix(name, "rand") || strings.HasPrefix(name, "gen")
}

func (f *functions) all() template.FuncMap {
	replaced := template.FuncMap{
		"lookup": f.lookup,
		"keys":   sortedKeys,
		"values": sortedValues,
	}
	for name, original := range sprig.TxtFuncMap() {
		switch {
		case generators(name) && f.generate:
			replaced[name] = f.generator(original)
		case generators(name), name == "shuffle":
			replaced[name] = refuse(original, errors.New("makes a different value each time, so the same chart would make different manifests each time: "+
				"set the value, or declare the Secret that has it as generated"))
		case name == "now", name == "ago":
			replaced[name] = refuse(original, errors.New("is a different value each time, so the same chart would make different manifests each time: set the value"))
		case name == "durationRound":
			replaced[name] = untimed(original)
		case strings.HasPrefix(name, "date"), strings.HasPrefix(name, "htmlDate"):
			if name != "dateModify" && name != "date_modify" {
				replaced[name] = timed(original)
			}
		}
	}
	return replaced
}

// refuse returns a function of the same type that always fails. Template functions may return an
// error next to their value.
func refuse(original any, err error) any {
	return wrap(original, func([]reflect.Value) ([]reflect.Value, error) { return nil, err })
}

// wrap returns a function with the parameters of another function. The new function returns the
// first result and an error.
func wrap(original any, call func([]reflect.Value) ([]reflect.Value, error)) any {
	of := reflect.TypeOf(original)
	var in []reflect.Type
	for i := range of.NumIn() {
		in = append(in, of.In(i))
	}
	failure := reflect.TypeFor[error]()
	made := reflect.FuncOf(in, []reflect.Type{of.Out(0), failure}, of.IsVariadic())
	return reflect.MakeFunc(made, func(args []reflect.Value) []reflect.Value {
		results, err := call(args)
		if err != nil {
			return []reflect.Value{reflect.Zero(of.Out(0)), reflect.ValueOf(err)}
		}
		if len(results) == 1 {
			results = append(results, reflect.Zero(failure))
		}
		return results
	}).Interface()
}

// generator calls the original function. In the second rendering it repeats the call until the
// value differs from the first one, if possible. Then everything that depends on the value differs
// between the renderings.
func (f *functions) generator(original any) any {
	function := reflect.ValueOf(original)
	return wrap(original, func(args []reflect.Value) ([]reflect.Value, error) {
		call := function.Call
		if function.Type().IsVariadic() {
			call = function.CallSlice
		}
		results := call(args)
		i := f.made
		f.made++
		if !f.twice {
			f.first = append(f.first, results)
			return results, nil
		}
		for range maxAttempts {
			if i >= len(f.first) || !reflect.DeepEqual(f.first[i][0].Interface(), results[0].Interface()) {
				break
			}
			results = call(args)
		}
		return results, nil
	})
}

// lookup finds the known Secrets if values may be generated. Any other lookup fails, because
// rendering does not read a cluster.
func (f *functions) lookup(apiVersion, kind, namespace, name string) (map[string]any, error) {
	if !f.generate || apiVersion != "v1" || kind != "Secret" || name == "" {
		return nil, fmt.Errorf("asks a cluster for %s %s %s/%s, so the same chart would make different manifests elsewhere: set the value, or declare the Secret as generated",
			apiVersion, kind, namespace, name)
	}
	for _, secret := range f.known {
		metadata, _ := secret["metadata"].(map[string]any)
		if metadata["namespace"] == namespace && metadata["name"] == name {
			return secret, nil
		}
	}
	return map[string]any{}, nil
}

// timed refuses an argument that is not a time: the date function would use the current time
// instead.
func timed(original any) any {
	function := reflect.ValueOf(original)
	return wrap(original, func(args []reflect.Value) ([]reflect.Value, error) {
		isTime := slices.ContainsFunc(args, func(arg reflect.Value) bool {
			switch arg.Interface().(type) {
			case time.Time, *time.Time, int64, int, int32:
				return true
			}
			return false
		})
		if !isTime {
			return nil, errors.New("is given no time, and would use the current one: set the value")
		}
		return function.Call(args), nil
	})
}

// untimed refuses a time: the function would return the time that has passed since.
func untimed(original any) any {
	function := reflect.ValueOf(original)
	return wrap(original, func(args []reflect.Value) ([]reflect.Value, error) {
		for _, arg := range args {
			if _, isTime := arg.Interface().(time.Time); isTime {
				return nil, errors.New("is given a time, and would return how long ago it was: set the value")
			}
		}
		return function.Call(args), nil
	})
}

// sortedKeys returns the keys of maps, sorted. Sprig's function returns them in random order.
func sortedKeys(of ...map[string]any) []string {
	keys := []string{}
	for _, one := range of {
		for key := range one {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func sortedValues(of map[string]any) []any {
	values := []any{}
	for _, key := range sortedKeys(of) {
		values = append(values, of[key])
	}
	return values
}
