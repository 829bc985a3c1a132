// Package values merges the configuration of ClusterExtensions from Secrets and ConfigMaps. It also
// finds values of Secrets that appear outside of Secrets, and masks them in messages.
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
	// MaxDepth limits the length of a target path, in field names.
	MaxDepth = 16
	// MaxBytes limits the total size of all sources.
	MaxBytes = 1 << 20
	// minBytes is the minimum length of a Secret's value to search for. Shorter values are in every
	// object.
	minBytes = 8
	// DefaultKey is the default of a source's key.
	DefaultKey = "values.yaml"
)

const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// Source is a key of a Secret or ConfigMap in the namespace of the extension.
type Source struct {
	// Kind is Secret or ConfigMap.
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Key is DefaultKey if empty.
	Key string `json:"key,omitempty"`
	// TargetPath is a path of field names separated by dots. With it, the value is set there as a
	// string. Without it, the value must be a YAML object.
	TargetPath string `json:"targetPath,omitempty"`
}

// String returns the source for messages.
func (s Source) String() string { return s.Kind + " " + s.Name + ", key " + s.Key }

// Parse parses a list of sources, as YAML or JSON. It refuses unknown fields.
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
	// JSON is a JSON object.
	JSON []byte
	// secret are the strings and numbers from Secrets.
	secret []leaf
	masked *redact.Values
}

// leaf is one value of a Secret.
type leaf struct {
	// path is the source and the field. spellings are the forms in which the value can appear in
	// other texts.
	path      string
	spellings []string
}

// Merge merges the values of sources in order. A later value wins, and inline wins over all. It
// merges objects field by field, and replaces lists. Errors contain no values.
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
	// The author has published these values also outside of Secrets.
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

func (s Source) read(content []byte) (map[string]any, error) {
	if s.TargetPath == "" {
		var values map[string]any
		if err := yaml.UnmarshalStrict(content, &values); err != nil {
			// The parser's error would quote the text.
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

// each calls f for every string and number below a value. If names is true, it also calls f for the
// names of fields.
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

// HasSecrets reports whether a value comes from a Secret.
func (v *Values) HasSecrets() bool { return v != nil && v.masked != nil }

// Mask returns a text with the values of Secrets masked.
func (v *Values) Mask(text string) string {
	if !v.HasSecrets() {
		return text
	}
	return v.masked.Mask(text)
}

// Exposed returns an error that names a field which exposes a Secret's value to readers of the
// object. Only data and stringData of a Secret may have such a value. Exposed also finds base64,
// and a value within a longer text. It returns nil if no field exposes a value.
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

// find returns the Secret's value that a text contains; nil if it contains none.
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

// hide masks the value in the name of an object or field.
func (l *leaf) hide(name string) string {
	for _, one := range l.spellings {
		name = strings.ReplaceAll(name, one, redact.Hidden)
	}
	return name
}
