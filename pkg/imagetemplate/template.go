package imagetemplate

import (
	"fmt"
	"strings"
)

const (
	// MaxLength limits a template, in bytes. The name of a reference has at most 255 bytes and its
	// tag 128; the rest is for variables.
	MaxLength = 4096
	// MaxVariables limits the variables of a template; each repetition counts.
	MaxVariables = 16
	// MaxPath limits the JSON path of a variable, in bytes.
	MaxPath = 512
)

// Template is a parsed template.
type Template struct {
	// Text is the text of the template.
	Text string
	// Problem is the first syntax error; nil if there is none.
	Problem *Problem

	parts []part
}

type part struct {
	text     string
	variable *Variable
}

// Problem is a syntax error in a template.
type Problem struct {
	// At is the offset in bytes from the beginning of the text.
	At int
	// Detail describes the found and the expected text.
	Detail string
}

// Error implements error.
func (p *Problem) Error() string { return fmt.Sprintf("at byte %d: %s", p.At, p.Detail) }

const (
	KubeMajor = "kube_major_version"
	KubeMinor = "kube_minor_version"
	KubePatch = "kube_patch_version"
)

// Variable is a placeholder for a value from the cluster.
type Variable struct {
	// Text is the variable as written, including braces.
	Text string
	// Kube is KubeMajor, KubeMinor or KubePatch; empty when Field is set.
	Kube string
	// Field is a field of an object; nil when Kube is set.
	Field *Field
}

// Field is a field of an object in the cluster.
type Field struct {
	Object
	// Path is a JSON path in kubectl's syntax, including braces.
	Path string
}

// Object names an object in the cluster.
type Object struct {
	// Group is empty for the core group.
	Group, Version, Kind string
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name string
}

// String returns text for messages: "Sample.foo.example.com/v1 ns/MySample".
func (o Object) String() string {
	kind := o.Kind
	if o.Group != "" {
		kind += "." + o.Group
	}
	return kind + "/" + o.Version + " " + strings.TrimPrefix(o.Namespace+"/"+o.Name, "/")
}

// Parse parses a template. Text with an invalid brace is kept, and becomes the Problem of the
// template.
func Parse(text string) *Template {
	t := &Template{Text: text}
	if len(text) > MaxLength {
		t.Problem = &Problem{Detail: fmt.Sprintf("a template has at most %d bytes, and this one has %d", MaxLength, len(text))}
		return t
	}
	variables, plain := 0, 0
	flush := func(end int) {
		if plain < end {
			t.parts = append(t.parts, part{text: text[plain:end]})
		}
	}
	for at := 0; at < len(text); {
		switch text[at] {
		case '}':
			t.fault(at, "there is no { for this }")
		case '{':
			found, detail := readVariable(text[at:])
			if detail == "" && variables == MaxVariables {
				detail = fmt.Sprintf("a template has at most %d variables", MaxVariables)
			}
			if detail != "" {
				t.fault(at, detail)
				break
			}
			flush(at)
			t.parts = append(t.parts, part{variable: found})
			variables++
			at += len(found.Text)
			plain = at
			continue
		}
		at++
	}
	flush(len(text))
	return t
}

func (t *Template) fault(at int, detail string) {
	if t.Problem == nil {
		t.Problem = &Problem{At: at, Detail: detail}
	}
}

// Variables returns the variables of a template in order, each once.
func (t *Template) Variables() []Variable {
	var found []Variable
	seen := map[string]bool{}
	for _, p := range t.parts {
		if p.variable != nil && !seen[p.variable.Text] {
			seen[p.variable.Text] = true
			found = append(found, *p.variable)
		}
	}
	return found
}
