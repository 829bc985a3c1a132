package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Error is one error in a configuration.
type Error struct {
	// Path of the field, such as deploymentConfig.env[0].name; empty for the whole configuration.
	Path string
	// Message describes the found and the allowed value.
	Message string
	olm     string
}

func (e Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Errors are all errors, sorted by path.
type Errors struct {
	List []Error
	// Modes are the install modes of the bundle.
	Modes InstallModes
}

// Error returns one line per error.
func (e *Errors) Error() string {
	lines := make([]string, len(e.List))
	for i, one := range e.List {
		lines[i] = "configuration: " + one.Error()
	}
	return strings.Join(lines, "\n")
}

// InWordsOfOLM returns OLM v1's message for the errors, so that users can search for it.
func (e *Errors) InWordsOfOLM() string {
	const begin = "invalid ClusterExtension configuration: invalid configuration: "
	lines := make([]string, len(e.List))
	for i, one := range e.List {
		lines[i] = cmp.Or(one.olm, one.Error())
	}
	if len(lines) == 1 {
		return begin + lines[0]
	}
	return begin + "multiple errors found:\n  - " + strings.Join(lines, "\n  - ")
}

// newErrors takes the innermost errors of the validator: they describe the fault. The outer errors
// only have its place.
func newErrors(found *jsonschema.ValidationError) *Errors {
	var errs Errors
	var visit func(*jsonschema.ValidationError)
	visit = func(one *jsonschema.ValidationError) {
		if len(one.Causes) == 0 {
			errs.List = append(errs.List, describe(one)...)
		}
		for _, cause := range one.Causes {
			visit(cause)
		}
	}
	visit(found)
	slices.SortFunc(errs.List, func(a, b Error) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Message, b.Message))
	})
	errs.List = slices.Compact(errs.List)
	return &errs
}

func describe(found *jsonschema.ValidationError) []Error {
	path := pathName(found.InstanceLocation)
	at := func(message string, args ...any) []Error {
		return []Error{{Path: path, Message: fmt.Sprintf(message, args...)}}
	}
	switch why := found.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var errs []Error
		for _, name := range why.Properties {
			errs = append(errs, Error{Path: join(path, name), Message: "unknown field", olm: fmt.Sprintf("unknown field %q", join(path, name))})
		}
		return errs
	case *kind.Required:
		var errs []Error
		for _, name := range why.Missing {
			errs = append(errs, Error{Path: join(path, name), Message: "is missing, and is required", olm: fmt.Sprintf("required field %q is missing", join(path, name))})
		}
		return errs
	case *kind.Type:
		return []Error{{
			Path: path, Message: fmt.Sprintf("is %s, want %s", why.Got, strings.Join(why.Want, " or ")),
			olm: fmt.Sprintf("invalid type for field %q: got %s, want %s", path, why.Got, strings.Join(why.Want, " or ")),
		}}
	case *kind.Const:
		return []Error{{
			Path: path, Message: fmt.Sprintf("is %q, must be %q: the operator can watch no namespace but its own", why.Got, why.Want),
			olm: fmt.Sprintf("invalid value %q: must be %q (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode", why.Got, why.Want),
		}}
	case *kind.Not:
		return at("must not be the namespace of the operator, which cannot watch its own namespace")
	case *kind.Pattern:
		return at("is %q, must match pattern %s", why.Got, why.Want)
	default:
		return at("%s", found.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
	}
}

// pathName formats a path, with indexes in brackets.
func pathName(steps []string) string {
	path := ""
	for _, step := range steps {
		if strings.Trim(step, "0123456789") == "" && path != "" {
			path += "[" + step + "]"
			continue
		}
		path = join(path, step)
	}
	return path
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
