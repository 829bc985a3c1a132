package accepted

import (
	"math"
	"regexp"
	"slices"
	"strings"
)

// keywords that may come, go and change in a schema, with the values that are valid by
// themselves. A default is compared with its schema (consistent).
var keywords = map[string]func(value any) bool{
	"description":                isText,
	"format":                     isText, // one that is not known is a warning
	"pattern":                    isPattern,
	"enum":                       isEnumeration,
	"required":                   isWords,
	"minimum":                    isNumber,
	"maximum":                    isNumber,
	"exclusiveMinimum":           isBoolean,
	"exclusiveMaximum":           isBoolean,
	"minLength":                  isCount,
	"maxLength":                  isCount,
	"minItems":                   isCount,
	"maxItems":                   isCount,
	"minProperties":              isCount,
	"maxProperties":              isCount,
	"default":                    func(any) bool { return true },
	"x-kubernetes-map-type":      func(value any) bool { return value == "atomic" || value == "granular" },
	"x-kubernetes-list-type":     func(value any) bool { return value == "atomic" || value == "set" || value == "map" },
	"x-kubernetes-list-map-keys": isWords,
}

func isText(value any) bool { _, is := value.(string); return is }

func isBoolean(value any) bool { _, is := value.(bool); return is }

func isCount(value any) bool { number, is := value.(int64); return is && number >= 0 }

func isNumber(value any) bool {
	switch value.(type) {
	case int64, float64:
		return true
	}
	return false
}

// isPattern is true for a regular expression. Names of Unicode classes, of which Go has come to
// know more, may not compile in an older server.
func isPattern(value any) bool {
	text, is := value.(string)
	if !is || strings.Contains(text, `\p`) || strings.Contains(text, `\P`) {
		return false
	}
	_, err := regexp.Compile(text)
	return err == nil
}

// isEnumeration is true for a list of texts, numbers and booleans.
func isEnumeration(value any) bool {
	list, is := value.([]any)
	return is && len(list) > 0 && !slices.ContainsFunc(list, func(one any) bool { return !isText(one) && !isNumber(one) && !isBoolean(one) })
}

// plain says what is not known of a schema that is new: whether it is structural
// (pkg/apiserver/schema, ValidateStructural), and has nothing but what is listed.
func plain(schema map[string]any, at place) string {
	below := at.below(schema)
	for name, value := range schema {
		why := ""
		switch name {
		case "type": // is looked at below
		case "properties":
			why = plainProperties(value, below)
		case "items", "additionalProperties":
			child, is := value.(map[string]any)
			if !is {
				return name + ": is no schema"
			}
			why = prefixed(plain(child, below.child(name)))
		case "anyOf":
			if schema[intOrString] != true || !same(value, eitherType) {
				why = ": quantifiers are not judged"
			}
		case intOrString, preserve:
			if value != true {
				why = ": has a value that the server may refuse"
			}
		default:
			why = at.keyword(name, value)
		}
		if why != "" {
			return name + why
		}
	}
	if why := consistent(schema, at); why != "" {
		return ": " + why
	}
	return ""
}

// mostBytesOfName is how long the name of a new property may be. API servers read what is
// applied as YAML, in which a key takes at most 1,024 characters, of which one that is escaped
// has six.
const mostBytesOfName = 160

const longName = "the name of a property is long"

func plainProperties(value any, at place) string {
	properties, is := value.(map[string]any)
	if !is {
		return ": are no properties"
	}
	for name, value := range properties {
		schema, is := value.(map[string]any)
		if !is {
			return "." + name + ": is no schema"
		}
		if len(name) > mostBytesOfName {
			return ": " + longName
		}
		if why := plain(schema, at); why != "" {
			return "." + name + prefixed(why)
		}
	}
	return ""
}

const (
	intOrString = "x-kubernetes-int-or-string"
	preserve    = "x-kubernetes-preserve-unknown-fields"
)

// eitherType is the one quantifier with types that is structural, beside intOrString.
var eitherType any = []any{map[string]any{"type": "integer"}, map[string]any{"type": "string"}}

// scalars are types of values that have no parts.
var scalars = []string{"string", "number", "integer", "boolean"}

// consistent says what keywords of a schema do not go together, or are not known to.
func consistent(schema map[string]any, at place) string {
	kind, typed := schema["type"]
	_, either := schema[intOrString]
	_, preserves := schema[preserve]
	_, properties := schema["properties"]
	_, values := schema["additionalProperties"]
	items, listed := schema["items"].(map[string]any)
	switch {
	case typed && kind != "object" && kind != "array" && !isScalar(kind), !typed && !either && !preserves, either && (typed || preserves):
		return "the type is not one that is known to be taken"
	case (properties || values) && kind != "object", properties && values:
		return "properties do not go with the rest"
	case listed != (kind == "array"):
		return "items do not go with the type"
	}
	if _, set := schema["x-kubernetes-map-type"]; set && kind != "object" {
		return "is no object, and has a type of maps"
	}
	if why := listType(schema, items); why != "" {
		return why
	}
	if value, set := schema["default"]; set && (at.keyed || !fits(value, schema)) {
		return "the default is not known to fit"
	}
	return ""
}

func isScalar(kind any) bool { return slices.Contains(scalars, text(kind)) }

func text(value any) string { one, _ := value.(string); return one }

// listType says what does not go together with the type of a list: members of a set are
// scalars, and those of a map have keys, each of which is there by itself or by a default.
func listType(schema, items map[string]any) string {
	kind, set := schema["x-kubernetes-list-type"]
	keys, keyed := schema["x-kubernetes-list-map-keys"].([]any)
	_, nullable := items["nullable"]
	switch {
	case set && schema["type"] != "array":
		return "is no array, and has a type of lists"
	case keyed != (kind == "map"):
		return "keys do not go with the type of the list"
	case kind == "set" && (nullable || !isScalar(items["type"])):
		return "the items of a set are not known to be scalars"
	case kind == "map" && (nullable || len(keys) == 0 || items["type"] != "object"):
		return "the items of a map are no objects with keys"
	}
	properties, _ := items["properties"].(map[string]any)
	required, _ := items["required"].([]any)
	for i, key := range keys {
		property, _ := properties[text(key)].(map[string]any)
		_, nullable := property["nullable"]
		_, defaults := property["default"]
		if nullable || !isScalar(property["type"]) || !defaults && !slices.Contains(required, key) || slices.Contains(keys[:i], key) {
			return "a key of the map is not known to be one"
		}
	}
	return ""
}

// fits is true for a default that its schema certainly lets pass: a scalar of its type, where
// nothing else is asked of it but to be one of the texts of a list, or a whole number between
// two others. The format of a number is asked of its bounds too
// (k8s.io/kube-openapi/pkg/validation/validate, numberValidator).
func fits(value any, schema map[string]any) bool {
	number, whole := wholeNumber(value, schema["format"])
	for name, keyword := range schema {
		limit, bounded := wholeNumber(keyword, schema["format"])
		ok := false
		switch name {
		case "description", "type", "default":
			ok = true
		case "enum":
			list, _ := keyword.([]any)
			ok = isText(value) && slices.ContainsFunc(list, func(one any) bool { return one == value })
		case "format":
			ok = whole && (keyword == "int64" || keyword == "int32")
		case "minimum":
			ok = whole && bounded && number >= limit
		case "maximum":
			ok = whole && bounded && number <= limit
		}
		if !ok {
			return false
		}
	}
	switch schema["type"] {
	case "string":
		return isText(value)
	case "boolean":
		return isBoolean(value)
	case "integer":
		return whole
	case "number":
		return isNumber(value) && schema["format"] == nil
	}
	return false
}

// wholeNumber is one that is exact as a float too, and has at most 32 bits if the format says so.
func wholeNumber(value, format any) (int64, bool) {
	number, is := value.(int64)
	most := int64(1) << 53
	if format == "int32" {
		most = math.MaxInt32
	}
	return number, is && number >= -most && number <= most
}
