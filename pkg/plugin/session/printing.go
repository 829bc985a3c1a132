package session

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/scheme"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
)

// Format is the value of --output; empty means output for people.
type Format string

// The formats for machines, and for comments of reviews.
const (
	JSON     Format = "json"
	YAML     Format = "yaml"
	Name     Format = "name"
	Markdown Format = "markdown"
)

// Add defines the flag.
func (f *Format) Add(flags *pflag.FlagSet) {
	flags.VarP(f, "output", "o", "Format for machines: json, yaml or name. Without it the output is for people.")
}

// String implements pflag.Value.
func (f *Format) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *Format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *Format) Set(value string) error {
	if !slices.Contains([]Format{JSON, YAML, Name}, Format(value)) {
		return outcome.Errorf(outcome.Unknown, "want json, yaml or name")
	}
	*f = Format(value)
	return nil
}

// AddWithMarkdown defines the flag for a command that supports Markdown.
func (f *Format) AddWithMarkdown(flags *pflag.FlagSet) {
	flags.VarP((*withMarkdown)(f), "output", "o", "Format for machines: json, yaml or name; or markdown, for the comment of a review. Without it the output is for people.")
}

// withMarkdown is the format flag of a command that also supports Markdown.
type withMarkdown Format

// String implements pflag.Value.
func (f *withMarkdown) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *withMarkdown) Type() string { return "format" }

// Set implements pflag.Value.
func (f *withMarkdown) Set(value string) error {
	if Format(value) != Markdown && (*Format)(f).Set(value) != nil {
		return outcome.Errorf(outcome.Unknown, "want json, yaml, name or markdown")
	}
	*f = withMarkdown(value)
	return nil
}

type list struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ListMeta  `json:"metadata"`
	Items           []runtime.Object `json:"items"`
}

// PrintObject prints one object of the API for machines.
func (s *Session) PrintObject(format Format, object runtime.Object) error {
	identified, err := s.identify(object)
	if err != nil {
		return err
	}
	if format == Name {
		return s.printName(identified)
	}
	return s.PrintValue(format, identified)
}

// PrintEach prints objects while they change: JSON on one line, YAML after ---, or a name.
func (s *Session) PrintEach(format Format, objects []runtime.Object) error {
	for _, object := range objects {
		if format == Name {
			if err := s.PrintObject(format, object); err != nil {
				return err
			}
			continue
		}
		identified, err := s.identify(object)
		if err != nil {
			return err
		}
		encoded, err := json.Marshal(identified)
		if err == nil && format == YAML {
			encoded, err = yaml.JSONToYAML(encoded)
			encoded = append([]byte("---\n"), bytes.TrimSuffix(encoded, []byte("\n"))...)
		}
		if err != nil {
			return fmt.Errorf("encoding the output: %w", err)
		}
		if _, err = s.Stdout.Write(append(encoded, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// PrintObjects prints a list of objects.
func (s *Session) PrintObjects(format Format, objects []runtime.Object) error {
	out := list{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.Object{}}
	for _, object := range objects {
		identified, err := s.identify(object)
		if err != nil {
			return err
		}
		if format == Name {
			if err := s.printName(identified); err != nil {
				return err
			}
		}
		out.Items = append(out.Items, identified)
	}
	if format == Name {
		return nil
	}
	return s.PrintValue(format, out)
}

// PrintValue prints a value that is not an object of the API.
func (s *Session) PrintValue(format Format, value any) error {
	var encoded []byte
	var err error
	if format == YAML {
		encoded, err = yaml.Marshal(value)
	} else {
		encoded, err = json.MarshalIndent(value, "", "  ")
		encoded = append(encoded, '\n')
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	_, err = s.Stdout.Write(encoded)
	return err
}

// identify sets apiVersion and kind, which clients omit.
func (s *Session) identify(object runtime.Object) (runtime.Object, error) {
	if !object.GetObjectKind().GroupVersionKind().Empty() {
		return object, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, fmt.Errorf("encoding the output: %w", err)
	}
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(kinds[0])
	return object, nil
}

func (s *Session) printName(object runtime.Object) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return fmt.Errorf("naming the output: %w", err)
	}
	kind := object.GetObjectKind().GroupVersionKind()
	s.Out.Printf("%s/%s\n", strings.ToLower(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}.String()), accessor.GetName())
	return nil
}
