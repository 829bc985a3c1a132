// Package redact removes the content of Secrets, and fields that the administrator lists as secret,
// from diffs, conditions, events and logs. More users can read those than the objects that they
// describe.
//
// Mask hides fields by their path, in objects whose fields are known. Messages of API servers and
// webhooks can contain any text. Of an error about a Secret, only the reason and the names of
// fields are kept. In other texts, Values replaces the hidden values. The package is pure: no
// client, no clock.
package redact

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Hidden replaces a hidden value.
const Hidden = "***"

// Rule names fields to hide. A diff shows whether they changed, but never their values.
type Rule struct {
	// Group and Kind of the objects, as in "apps" and "Deployment".
	Group, Kind string
	// Path is the path of the field, such as `.spec.auth.password`. `*` matches any key of an
	// object, and `[*]` any item of a list. A key that is no identifier is quoted:
	// `.spec.users[*].settings["a.b"].*`. The whole value at the path is hidden. A value of another
	// type than the path expects, such as a string instead of a list, is also hidden.
	Path string
}

// Grammar describes the syntax of a rule for users.
const Grammar = `<Kind>[.<group>]:<path>, such as 'Database.example.com:.spec.users[*].password'; a path is made of .field, .* (any key), [*] (any item of a list) and ["key"] (a key with characters other than letters, digits, - and _)`

// ParseRule parses a rule such as `Deployment.apps:.spec.a[*].b`, or `ConfigMap:.data.password` for
// the core group. Errors name the mistake and the grammar.
func ParseRule(text string) (Rule, error) {
	kind, path, ok := strings.Cut(text, ":")
	if !ok {
		return Rule{}, fmt.Errorf("%q has no colon between kind and path, want %s", text, Grammar)
	}
	gk := schema.ParseGroupKind(kind)
	rule := Rule{Group: gk.Group, Kind: gk.Kind, Path: path}
	if err := rule.check(); err != nil {
		return Rule{}, fmt.Errorf("%q: %w, want %s", text, err, Grammar)
	}
	return rule, nil
}

func (r Rule) check() error {
	if r.Kind == "" {
		return fmt.Errorf("the kind is missing")
	}
	if first := r.Kind[0]; first < 'A' || first > 'Z' || !manifest.IsIdentifier(r.Kind) {
		return fmt.Errorf("%q is no kind: write it as in manifests (Deployment), and not as a resource (deployments)", r.Kind)
	}
	if _, err := parsePath(r.Path); err != nil {
		return fmt.Errorf("path %q: %w", r.Path, err)
	}
	return nil
}

// String returns the rule in the form that ParseRule parses.
func (r Rule) String() string {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}.String() + ":" + r.Path
}

// Redactor holds the rules for hidden fields. A nil Redactor hides the content of Secrets, like
// every Redactor.
type Redactor struct {
	masks map[schema.GroupKind]Mask
}

// New returns a Redactor that hides fields in addition to the content of Secrets. An error about a
// rule names the rule.
func New(rules ...Rule) (*Redactor, error) {
	masks := make(map[schema.GroupKind]Mask)
	for _, rule := range rules {
		if err := rule.check(); err != nil {
			return nil, fmt.Errorf("hiding %s: %w", rule, err)
		}
		steps, err := parsePath(rule.Path)
		if err != nil {
			return nil, fmt.Errorf("hiding %s: %w", rule, err)
		}
		kind := schema.GroupKind{Group: rule.Group, Kind: rule.Kind}
		masks[kind] = append(masks[kind], steps)
	}
	return &Redactor{masks: masks}, nil
}

// Mask returns the rules for a kind, without the rule for Secrets.
func (r *Redactor) Mask(kind schema.GroupKind) Mask {
	if r == nil {
		return nil
	}
	return r.masks[kind]
}

// Hides reports whether objects of a kind may have hidden values.
func (r *Redactor) Hides(kind schema.GroupKind) bool {
	return kind == secretKind() || len(r.Mask(kind)) > 0
}

// Fields returns the paths of a kind's hidden fields up to the first part that is no name: {"spec",
// "users"} for `.spec.users[*].password`. It is for code that keeps only parts of an object.
func (r *Redactor) Fields(kind schema.GroupKind) [][]string {
	var fields [][]string
	for _, path := range r.Mask(kind) {
		var names []string
		for _, s := range path {
			if s.kind != oneKey {
				break
			}
			names = append(names, s.key)
		}
		if len(names) > 0 {
			fields = append(fields, names)
		}
	}
	return fields
}

// Object returns an object with Hidden in place of the hidden values of its kind. It shares
// unchanged parts with the original.
func (r *Redactor) Object(kind schema.GroupKind, object map[string]any) map[string]any {
	mask := r.Mask(kind)
	if kind == secretKind() {
		mask = append(slices.Clip(mask), SecretMask()...)
	}
	if len(mask) == 0 {
		return object
	}
	masked, ok := replace(object, mask).(map[string]any)
	if !ok {
		return map[string]any{}
	}
	return masked
}

func replace(value any, mask Mask) any {
	if len(mask) == 0 {
		return value
	}
	if mask.Hides(value) {
		return Hidden
	}
	switch v := value.(type) {
	case map[string]any:
		masked := make(map[string]any, len(v))
		for name, field := range v {
			masked[name] = replace(field, mask.Field(name))
		}
		return masked
	case []any:
		masked := make([]any, len(v))
		for i, item := range v {
			masked[i] = replace(item, mask.Item())
		}
		return masked
	}
	return value
}

func secretKind() schema.GroupKind { return schema.GroupKind{Kind: "Secret"} }
