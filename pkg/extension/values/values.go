// Package values has the configuration of ClusterExtensions that comes from Secrets and ConfigMaps.
// It merges values, and finds values of Secrets where they must not be: outside of Secrets, and in
// messages.
package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
)

const (
	// MaxSources limits the sources of an extension.
	MaxSources = 16
	// MaxDepth limits the fields of a target path.
	MaxDepth = 16
	// MaxBytes bounds the values of all sources together.
	MaxBytes = 1 << 20
	// minBytes is the length from which a value of a Secret is looked for. Shorter ones are in every object.
	minBytes = 8
	// DefaultKey is the key of a source that names none.
	DefaultKey = "values.yaml"
)

// Kinds of sources.
const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// Source is a key of a Secret or ConfigMap in the namespace of the extension.
type Source struct {
	// Kind is Secret or ConfigMap.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Key is DefaultKey when it is empty.
	Key string `json:"key,omitempty"`
	// TargetPath are the names of fields, with dots between them, below which the value is a string. Without one
	// the value is YAML, and an object.
	TargetPath string `json:"targetPath,omitempty"`
}

// String is the source for people.
func (s Source) String() string { return s.Kind + " " + s.Name + ", key " + s.Key }

// Parse reads a list of sources, as YAML or JSON, without unknown fields.
func Parse(text string) ([]Source, error) {
	const example = "[{kind: Secret, name: database, key: password, targetPath: database.password}]"
	var sources []Source
	if err := yaml.UnmarshalStrict([]byte(text), &sources); err != nil {
		return nil, fmt.Errorf("it must be a list of sources, such as %s: %w", example, err)
	}
	if len(sources) == 0 || len(sources) > MaxSources {
		return nil, fmt.Errorf("it has %d sources, and must have 1 to %d, such as %s", len(sources), MaxSources, example)
	}
	for i := range sources {
		s := &sources[i]
		if s.Key == "" {
			s.Key = DefaultKey
		}
		var problems []string
		switch {
		case s.Kind != Secret && s.Kind != ConfigMap:
			problems = []string{fmt.Sprintf("kind is %q, and must be %s or %s", s.Kind, Secret, ConfigMap)}
		case len(validation.IsDNS1123Subdomain(s.Name)) > 0:
			problems = []string{fmt.Sprintf("name is %q, and must be that of a %s in the namespace of the extension", s.Name, s.Kind)}
		default:
			problems = validation.IsConfigMapKey(s.Key)
		}
		if parts := strings.Split(s.TargetPath, "."); s.TargetPath != "" && (slices.Contains(parts, "") || len(parts) > MaxDepth) {
			problems = append(problems, fmt.Sprintf("targetPath is %q, and must have 1 to %d names of fields with dots between them", s.TargetPath, MaxDepth))
		}
		if len(problems) > 0 {
			return nil, fmt.Errorf("source %d: %s", i+1, strings.Join(problems, "; "))
		}
	}
	return sources, nil
}

// Values are merged values.
type Values struct {
	// JSON is an object.
	JSON []byte
	// secret are the strings and numbers that Secrets have, and where.
	secret []leaf
	masked *redact.Values
}

// leaf is one value of a Secret.
type leaf struct {
	// path is the source and the field, and spellings are the forms that other texts may have it in.
	path      string
	spellings []string
}

// Merge merges what sources have, in their order: of two values the later one counts, and the inline one most. It
// merges objects field by field, and no lists. Errors have no values.
func Merge(sources []Source, contents [][]byte, inline []byte) (*Values, error) {
	merged := map[string]any{}
	public := map[string]bool{}
	v := &Values{}
	var secrets []string
	size := 0
	for i, source := range sources {
		if size += len(contents[i]); size > MaxBytes {
			return nil, fmt.Errorf("the sources have more than %d bytes together", MaxBytes)
		}
		values, err := source.read(contents[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", source, err)
		}
		each(values, "", false, func(path, text string) {
			if source.Kind != Secret {
				public[text] = true
				return
			}
			v.secret = append(v.secret, leaf{source.String() + field(path), []string{text}})
			secrets = append(secrets, text)
		})
		merge(merged, values)
	}
	if len(inline) > 0 {
		var values map[string]any
		if err := json.Unmarshal(inline, &values); err != nil {
			return nil, errors.New("spec.config.inline must be an object, to be merged with values of other sources")
		}
		each(values, "", false, func(_, text string) { public[text] = true })
		merge(merged, values)
	}
	var err error
	if v.JSON, err = json.Marshal(merged); err != nil {
		return nil, errors.New("the values cannot be written as JSON")
	}
	// The author has shown these by other means.
	v.secret = slices.DeleteFunc(v.secret, func(one leaf) bool { return public[one.spellings[0]] || len(one.spellings[0]) < minBytes })
	for i := range v.secret {
		v.secret[i].spellings = slices.DeleteFunc(redact.Spellings(v.secret[i].spellings[0]), func(one string) bool { return len(one) < minBytes })
	}
	if len(secrets) > 0 {
		v.masked = redact.Texts(secrets)
	}
	return v, nil
}

func field(path string) string {
	if path == "" {
		return ""
	}
	return ", " + path
}

// read are the values of one source.
func (s Source) read(content []byte) (map[string]any, error) {
	if s.TargetPath == "" {
		var values map[string]any
		if err := yaml.UnmarshalStrict(content, &values); err != nil {
			// The error of the parser quotes the text.
			return nil, errors.New("the value must be YAML, and an object; to set one field, name it as targetPath")
		}
		return values, nil
	}
	var value any = string(content)
	parts := strings.Split(s.TargetPath, ".")
	for _, part := range slices.Backward(parts) {
		value = map[string]any{part: value}
	}
	return value.(map[string]any), nil
}

func merge(into, from map[string]any) {
	for name, value := range from {
		inner, is := value.(map[string]any)
		if before, was := into[name].(map[string]any); is && was {
			merge(before, inner)
			continue
		}
		into[name] = value
	}
}

// each calls f for every string and number below a value, and for the names of fields when names is true.
func each(value any, path string, names bool, f func(path, text string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			at := strings.TrimPrefix(path+"."+name, ".")
			if names {
				f(at, name)
			}
			each(value[name], at, names, f)
		}
	case []any:
		for i, item := range value {
			each(item, fmt.Sprintf("%s[%d]", path, i), names, f)
		}
	case string:
		f(path, value)
	case float64:
		f(path, strconv.FormatFloat(value, 'f', -1, 64))
	}
}

// HasSecrets reports whether a value is of a Secret.
func (v *Values) HasSecrets() bool { return v != nil && v.masked != nil }

// Mask returns a text without values of Secrets.
func (v *Values) Mask(text string) string {
	if !v.HasSecrets() {
		return text
	}
	return v.masked.Mask(text)
}

// Exposed returns an error that names a field which shows a Secret's value to readers of the object.
// Only data and stringData of a Secret are allowed. The value may be part of the field, or base64. It
// returns nil when there is none.
func (v *Values) Exposed(object manifest.Object) error {
	if v == nil || len(v.secret) == 0 {
		return nil
	}
	var content map[string]any
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return fmt.Errorf("%s: %w", object.ID, err)
	}
	if object.IsSecret() {
		content = maps.Clone(content)
		delete(content, "data")
		delete(content, "stringData")
	}
	var found error
	each(content, "", true, func(path, text string) {
		if found != nil {
			return
		}
		if one := v.find(text); one != nil {
			found = fmt.Errorf("%s: field %s has the value of %s, and only data of Secrets may have it", one.hide(object.ID.String()), one.hide(path), one.path)
		}
	})
	return found
}

// find returns the value of a Secret that a text has, nil when it has none.
func (v *Values) find(text string) *leaf {
	for _, reading := range redact.Readings(text) {
		for i := range v.secret {
			if slices.ContainsFunc(v.secret[i].spellings, func(one string) bool { return strings.Contains(reading, one) }) {
				return &v.secret[i]
			}
		}
	}
	return nil
}

// hide returns the name of an object or field without the value.
func (l *leaf) hide(name string) string {
	for _, one := range l.spellings {
		name = strings.ReplaceAll(name, one, redact.Hidden)
	}
	return name
}
