package crdsafety

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/penstock-project/penstock/pkg/diff/words"
	"github.com/penstock-project/penstock/pkg/text"
)

// maxSaid is the largest number of changes that are listed for one property.
const maxSaid = 20

func bounded(said []string, separator string) string {
	if more := len(said) - maxSaid; more > 0 {
		said = append(slices.Clone(said[:maxSaid]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, separator)
}

// place returns the name of a property of a version, as the notes of a diff use it.
func place(version, property string) string {
	if property = strings.TrimPrefix(property, "^"); property == "" {
		property = "the object"
	}
	return version + ": " + property + " "
}

func ofDefinition(finding Finding, live, next *apiextensionsv1.CustomResourceDefinition) string {
	switch finding.Check {
	case "scope":
		return fmt.Sprintf(words.ScopeChanges, live.Spec.Scope, next.Spec.Scope)
	case "storedVersionRemoval":
		var said []string
		for _, stored := range live.Status.StoredVersions {
			if !slices.ContainsFunc(next.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored }) {
				said = append(said, fmt.Sprintf(words.StoredVersionRemoved, stored))
			}
		}
		return bounded(said, "; ")
	case "existingFieldRemoval":
		// The message ends with the version and the path: "… : v1.^.spec.size".
		_, where, _ := strings.Cut(finding.Message, " : ")
		if version, property, found := strings.Cut(where, ".^"); found {
			return place(version, property) + words.FieldRemoved
		}
	}
	return finding.Message
}

func ofProperty(finding Finding, before, after *apiextensionsv1.JSONSchemaProps) string {
	at := place(finding.Version, finding.Property)
	switch finding.Check {
	case "type":
		return at + typeWords(before, after)
	case "required":
		var said []string
		for _, name := range newlyRequired(before, after) {
			said = append(said, place(finding.Version, finding.Property+"."+name)+words.NowRequired)
		}
		return bounded(said, "; ")
	case "enum":
		if len(before.Enum) == 0 {
			return at + fmt.Sprintf(words.OnlySome, words.List(without(after.Enum, nil)))
		}
		return at + fmt.Sprintf(words.NoLongerAllows, words.List(without(before.Enum, after.Enum)))
	case "default", oneOfCheck:
		return at + keywordWords(finding.Check, fieldsOf(before)[finding.Check] != nil, fieldsOf(after)[finding.Check] != nil)
	}
	old, now := fieldsOf(before), fieldsOf(after)
	if old[finding.Check] == nil {
		return at + fmt.Sprintf(words.GetsBound, finding.Check, string(now[finding.Check]))
	}
	return at + fmt.Sprintf(words.ChangesBound, finding.Check, string(old[finding.Check]), string(now[finding.Check]))
}

func typeWords(before, after *apiextensionsv1.JSONSchemaProps) string {
	if before.Type == "" {
		return fmt.Sprintf(words.MustBeOfType, after.Type)
	}
	return fmt.Sprintf(words.TypeChanges, before.Type, after.Type)
}

func keywordWords(name string, was, is bool) string {
	switch {
	case !was:
		return fmt.Sprintf(words.Gets, name)
	case !is:
		return fmt.Sprintf(words.Loses, name)
	}
	return fmt.Sprintf(words.Changes, name)
}

// ofOthers describes the differences that no check handles.
func ofOthers(version, path string, before, after *apiextensionsv1.JSONSchemaProps) string {
	old, now := fieldsOf(before), fieldsOf(after)
	names := map[string]bool{}
	for _, fields := range []map[string]bool{keysOf(old), keysOf(now)} {
		maps.Copy(names, fields)
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if string(old[name]) != string(now[name]) {
			said = append(said, keywordWords(name, old[name] != nil, now[name] != nil))
		}
	}
	return place(version, path) + bounded(said, ", ")
}

func keysOf[V any](of map[string]V) map[string]bool {
	out := map[string]bool{}
	for key := range of {
		out[key] = true
	}
	return out
}

func newlyRequired(before, after *apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	for _, name := range after.Required {
		if !slices.Contains(before.Required, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// without returns the values that only values has, as JSON.
func without(values, other []apiextensionsv1.JSON) []string {
	var out []string
	for _, one := range values {
		if !slices.ContainsFunc(other, func(o apiextensionsv1.JSON) bool { return string(o.Raw) == string(one.Raw) }) {
			out = append(out, text.Clip(string(one.Raw), longestValue))
		}
	}
	return out
}

// inOrder returns the message of the library with the newly required fields sorted, because the
// library lists them in any order.
func inOrder(finding Finding, before, after *apiextensionsv1.JSONSchemaProps) string {
	if finding.Check != "required" {
		return finding.Message
	}
	said, _, found := strings.Cut(finding.Message, "[")
	if !found {
		return finding.Message
	}
	return said + fmt.Sprint(newlyRequired(before, after))
}
