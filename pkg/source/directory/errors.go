package directory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one error in the input, with its place.
type Error struct {
	// File is the slash-separated path below the directory, or the name of the
	// stream.
	File string
	// Line counts from 1; 0 means the whole file.
	Line int
	// Message describes the problem and the remedy.
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

// Errors are all errors, sorted by file and line.
type Errors struct {
	List []*Error
	// Omitted is the number of further errors that are not listed.
	Omitted int
}

// Error returns one line per error.
func (e *Errors) Error() string {
	lines := make([]string, 0, len(e.List)+1)
	for _, one := range e.List {
		lines = append(lines, one.Error())
	}
	if e.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.Omitted))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each error, for errors.As.
func (e *Errors) Unwrap() []error {
	list := make([]error, 0, len(e.List))
	for _, one := range e.List {
		list = append(list, one)
	}
	return list
}

type problems struct {
	limit int
	found Errors
}

func (p *problems) add(file string, line int, format string, args ...any) {
	if len(p.found.List) >= p.limit {
		p.found.Omitted++
		return
	}
	p.found.List = append(p.found.List, &Error{File: file, Line: line, Message: fmt.Sprintf(format, args...)})
}

func (p *problems) err() error {
	if len(p.found.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.found.List, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &p.found
}
