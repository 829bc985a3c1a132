package crdsafety

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/validations"

	"github.com/penstock-project/penstock/pkg/text"
)

const oneOfCheck = "oneOf"

// oneOf compares the alternatives of a property of which exactly one must match. A removed
// alternative refuses values that were accepted. A new alternative may match together with another
// one, which also refuses values. No released version of crdify has this check.
type oneOf struct{ enforcement config.EnforcementPolicy }

var (
	_ validations.Validation                                  = &oneOf{}
	_ validations.Comparator[apiextensionsv1.JSONSchemaProps] = &oneOf{}
)

func registerOneOf(registry validations.Registry) {
	registry.Register(oneOfCheck, func(map[string]any) (validations.Validation, error) { return &oneOf{}, nil })
}

// Name returns the name of the check.
func (*oneOf) Name() string { return oneOfCheck }

// SetEnforcement sets whether the check refuses. The library calls it.
func (o *oneOf) SetEnforcement(policy config.EnforcementPolicy) { o.enforcement = policy }

// Compare compares two schemas and then blanks the compared fields, as the library requires of a
// check.
func (o *oneOf) Compare(before, after *apiextensionsv1.JSONSchemaProps) validations.ComparisonResult {
	old, now := alternatives(before.OneOf), alternatives(after.OneOf)
	before.OneOf, after.OneOf = nil, nil
	var errs []error
	if len(old) == 0 && len(now) > 0 {
		errs = append(errs, errors.New("oneOf constraint added when there was none previously"))
	}
	if removed := difference(old, now); removed != "" {
		errs = append(errs, fmt.Errorf("allowed oneOf schemas removed: %s", removed))
	}
	if added := difference(now, old); added != "" && len(old) > 0 {
		errs = append(errs, fmt.Errorf("allowed oneOf schemas added: %s", added))
	}
	return validations.HandleErrors(oneOfCheck, o.enforcement, errs...)
}

func alternatives(schemas []apiextensionsv1.JSONSchemaProps) map[string]bool {
	out := map[string]bool{}
	for i := range schemas {
		encoded, err := json.Marshal(&schemas[i])
		if err != nil {
			encoded = fmt.Appendf(nil, "alternative %d", i) // counts as a change
		}
		out[string(encoded)] = true
	}
	return out
}

// difference lists the elements that only a has.
func difference(a, b map[string]bool) string {
	var out []string
	for _, one := range slices.Sorted(maps.Keys(a)) {
		if !b[one] {
			out = append(out, text.Clip(one, longestValue))
		}
	}
	return strings.Join(out, ", ")
}
