package probe

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Spec is a custom probe of a revision: assertions that selected objects must fulfil.
type Spec struct {
	Selector Selector
	// Assertions must all hold. At least one is required.
	Assertions []Assertion
}

// Selector selects objects by kind, by their live labels, or both. At least one is required.
type Selector struct {
	// GroupKind selects objects of one kind; nil selects all kinds.
	GroupKind *schema.GroupKind
	// Labels selects objects by labels; nil selects all.
	Labels labels.Selector
}

// Assertion is one requirement. Exactly one of its fields is set.
type Assertion struct {
	ConditionEqual *ConditionEqual
	FieldsEqual    *FieldsEqual
	FieldValue     *FieldValue
	CEL            *CEL
}

// ConditionEqual requires an entry of status.conditions to have a status and to be current for the
// object's generation.
type ConditionEqual struct {
	// Type of the condition.
	Type string
	// Status that is required: True, False or Unknown.
	Status string
}

// FieldsEqual requires two fields to exist and be equal. Objects and lists are compared as a whole.
type FieldsEqual struct {
	// FieldA and FieldB are paths: names joined by dots.
	FieldA, FieldB string
}

// FieldValue requires a field to have a value.
type FieldValue struct {
	// FieldPath is the path of a scalar field: names joined by dots.
	FieldPath string
	// Value is the expected text; numbers and booleans are in their JSON form.
	Value string
}

// CEL requires an expression to be true.
type CEL struct {
	// Expression over self, the live object (see NewCELChecker).
	Expression string
	// Message is the text for a false expression; empty shows the expression itself.
	Message string
}

func (a Assertion) compile(c *compiler) (judge, error) {
	var found []judge
	var errs []error
	add := func(j judge, err error) {
		found = append(found, j)
		errs = append(errs, err)
	}
	if a.ConditionEqual != nil {
		add(*a.ConditionEqual, a.ConditionEqual.check())
	}
	if a.FieldsEqual != nil {
		add(a.FieldsEqual.compile())
	}
	if a.FieldValue != nil {
		add(a.FieldValue.compile())
	}
	if a.CEL != nil {
		add(c.compile(*a.CEL))
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("has %d of conditionEqual, fieldsEqual, fieldValue and cel, must have exactly one", len(found))
	}
	if err := errs[0]; err != nil {
		return nil, err
	}
	return found[0], nil
}

// units returns the cost of the probe for an object that it may select: each label requirement is
// compared, and each assertion reports a result.
func (s Spec) units() uint64 {
	const bytesPerUnit = 10
	units := len(s.Assertions)
	if s.Selector.Labels != nil {
		requirements, _ := s.Selector.Labels.Requirements()
		units += len(requirements)
	}
	for _, a := range s.Assertions {
		switch {
		case a.ConditionEqual != nil:
			units += len(a.ConditionEqual.Type) / bytesPerUnit
		case a.FieldsEqual != nil:
			units += (len(a.FieldsEqual.FieldA) + len(a.FieldsEqual.FieldB)) / bytesPerUnit
		case a.FieldValue != nil:
			units += (len(a.FieldValue.FieldPath) + len(a.FieldValue.Value)) / bytesPerUnit
		}
	}
	return uint64(units)
}

func (c ConditionEqual) check() error {
	allowed := []string{string(True), string(False), string(Unknown)}
	switch {
	case c.Type == "":
		return errors.New("conditionEqual: type is empty")
	case !slices.Contains(allowed, c.Status):
		return fmt.Errorf("conditionEqual: status is %q, must be one of %q", c.Status, allowed)
	}
	return nil
}

func (s Spec) compile(c *compiler) (selected, error) {
	switch {
	case s.Selector.GroupKind == nil && s.Selector.Labels == nil:
		return selected{}, errors.New("selector is empty, must have a groupKind, labels or both")
	case s.Selector.GroupKind != nil && s.Selector.GroupKind.Kind == "":
		return selected{}, errors.New("selector: groupKind has no kind")
	case len(s.Assertions) == 0:
		return selected{}, errors.New("has no assertions")
	}
	result := selected{labels: s.Selector.Labels, units: s.units()}
	for i, assertion := range s.Assertions {
		j, err := assertion.compile(c)
		if err != nil {
			return selected{}, fmt.Errorf("assertion %d: %w", i, err)
		}
		if s.Selector.GroupKind != nil && isSecret(*s.Selector.GroupKind) {
			if err := checkSecretReads(j.reads()); err != nil {
				return selected{}, fmt.Errorf("assertion %d: %w", i, err)
			}
		}
		result.judges = append(result.judges, j)
	}
	return result, nil
}
