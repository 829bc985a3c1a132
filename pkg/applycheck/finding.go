package applycheck

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// maxFindings is the largest number of listed findings of one object; further findings are
	// counted.
	maxFindings = 20
	// maxNameBytes limits names of fields and keys of items in messages, because both come from the
	// manifest.
	maxNameBytes = 80
	maxPathBytes = 512
	// maxProblemBytes limits the message of a decoder.
	maxProblemBytes = 256
)

// Reason is the kind of a finding, as one CamelCase word.
type Reason string

// Kinds of findings.
const (
	// Duplicate is a list item with the key of an earlier item.
	Duplicate Reason = "Duplicate"
	// Unknown is a field that the type does not declare.
	Unknown Reason = "Unknown"
	// WrongType is a value of another type than the declared type.
	WrongType Reason = "WrongType"
	// NoKey is a list item without any of the fields that identify it.
	NoKey Reason = "NoKey"
	// Undecodable is a value of the right type that the kind does not accept, such as a malformed
	// quantity.
	Undecodable Reason = "Undecodable"
)

// Finding is a fault that server-side apply refuses.
type Finding struct {
	Reason Reason
	// Path is the path of the field; for a duplicate, the path of the later item.
	Path Path
	// First is the index of the earlier item that a duplicate repeats.
	First int
	// Problem describes the found and the allowed value, for users. Only for a duplicate item it
	// contains a value, the key.
	Problem string
}

func (f Finding) String() string { return f.Path.String() + ": " + f.Problem }

// Findings are the findings in one object, sorted by field name along the walk.
type Findings struct {
	List []Finding
	// Omitted is the number of findings that are not listed.
	Omitted int
}

func (f *Findings) add(one Finding) {
	if len(f.List) == maxFindings {
		f.Omitted++
		return
	}
	one.Path = append(Path(nil), one.Path...)
	f.List = append(f.List, one)
}

// Path is the position of a value in an object.
type Path []Step

// Step is one step of a path: into a field, or into an item of a list.
type Step struct {
	// Field of a map; empty for a step into a list.
	Field string
	// Index of an item, from 0, if Field is empty.
	Index int
}

// String returns the path as text of limited length: spec.containers[0].env[3].
func (p Path) String() string {
	var b strings.Builder
	for i, step := range p {
		switch name := text.Clip(step.Field, maxNameBytes); {
		case step.Field == "":
			b.WriteString("[" + strconv.Itoa(step.Index) + "]")
		case strings.ContainsAny(name, ".[]\" \n"):
			fmt.Fprintf(&b, "[%q]", name)
		case i > 0:
			b.WriteString("." + name)
		default:
			b.WriteString(name)
		}
		if b.Len() > maxPathBytes {
			break
		}
	}
	return text.Clip(b.String(), maxPathBytes)
}
