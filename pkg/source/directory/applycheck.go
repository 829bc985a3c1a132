package directory

import (
	"fmt"
	"slices"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
)

// WarnInto returns a function for Options.Warn that adds to the warnings of out.
func WarnInto(out *source.Rendered) func(Error) {
	return func(one Error) { out.Warnings = append(out.Warnings, source.Warning(one)) }
}

// Check checks generated objects as Render checks parsed ones, and returns the repaired objects. It
// uses MaxErrors and Warn of options.
func Check(objects []Located, options Options) ([]Located, error) {
	c := options.collector()
	c.objects = objects
	if err := c.checkApply(); err != nil {
		return nil, err
	}
	return c.objects, nil
}

// checkApply checks all objects against the rules of server-side apply. It repairs duplicates whose
// meaning is clear, with a warning, and reports other problems as errors. A problem that the
// cluster's unknown version of Kubernetes may accept is only a warning.
func (c *collector) checkApply() error {
	builtin, err := applycheck.Builtin()
	if err != nil {
		return err
	}
	objects := make([]manifest.Object, len(c.objects))
	for i := range c.objects {
		objects[i] = c.objects[i].Object
	}
	definitions := applycheck.NewDefinitions(builtin, objects)
	for i := range c.objects {
		kind := definitions.TypeOf(c.objects[i].GroupVersionKind())
		ours := kind != nil
		if !ours && !definitions.Defines(c.objects[i].GroupKind()) {
			kind = builtin.TypeOf(c.objects[i].GroupVersionKind())
		}
		if kind == nil {
			continue
		}
		if err := c.checkObject(kind, &c.objects[i], c.objects[i].part(nil), ours); err != nil {
			return err
		}
	}
	return c.problems.err()
}

// checkObject checks one object. defined is true if its definition is among the objects. Only then an
// unknown field is an error, because otherwise the cluster's version decides.
func (c *collector) checkObject(kind *applycheck.Type, object *Located, at *position, defined bool) error {
	found, err := kind.Check(&object.Object)
	if err != nil || len(found.List) == 0 {
		return err
	}
	content, err := applycheck.Decode(object.JSON)
	if err != nil {
		return fmt.Errorf("%s: %w", object.ID, err)
	}
	dropped := map[string]bool{}
	for _, mend := range kind.Mend(content, c.asHelm) {
		dropped[mend.Path.String()] = true
		c.warning(object, at.place(mend.Path), "%s: %s (line %d stays)", mend.Path, mend.Problem, at.place(sibling(mend.Path, mend.Kept)))
	}
	if len(dropped) > 0 {
		if object.Object, err = manifest.Canonical(content); err != nil {
			return fmt.Errorf("%s: %w", object.ID, err)
		}
	}
	for _, one := range found.List {
		if one.Reason == applycheck.Duplicate && (dropped[one.Path.String()] || dropped[sibling(one.Path, one.First).String()]) {
			continue
		}
		c.finding(object, at, one, defined)
	}
	if found, err = kind.Check(&object.Object); err != nil || len(dropped) == 0 {
		return err
	}
	// A decoding error is found only if there is no other error, and has no place.
	for _, one := range found.List {
		if one.Reason == applycheck.Undecodable {
			c.finding(object, at, one, defined)
		}
	}
	return nil
}

func sibling(item applycheck.Path, index int) applycheck.Path {
	return append(slices.Clone(item[:len(item)-1]), applycheck.Step{Index: index})
}

// finding reports a problem that was not repaired, at its line.
func (c *collector) finding(object *Located, at *position, one applycheck.Finding, defined bool) {
	text := one.Problem
	if path := one.Path.String(); path != "" {
		text = path + ": " + text
	}
	if one.Reason == applycheck.Duplicate {
		text += fmt.Sprintf(" (first: line %d)", at.place(sibling(one.Path, one.First)))
	}
	if one.Reason == applycheck.Unknown && !defined {
		c.warning(object, at.place(one.Path), "%s: a cluster that does not know it refuses the object", text)
		return
	}
	c.problems.add(object.File, at.place(one.Path), "%s: %s", object.ID, text)
}

func (c *collector) warning(object *Located, line int, format string, args ...any) {
	if c.warn != nil {
		c.warn(Error{File: object.File, Line: line, Message: fmt.Sprintf("%s: ", object.ID) + fmt.Sprintf(format, args...)})
	}
}
