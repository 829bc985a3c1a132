// Package patch changes single fields of rendered objects, for ClusterExtensions whose bundle or
// chart has no value for a field. Patches are applied first: privilege checks, CRD upgrade safety,
// the deletion budget and the diff see only patched objects.
package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// MaxPatches limits the number of patches.
	MaxPatches = 64
	// MaxOperations limits the total operations of all JSON patches.
	MaxOperations = 1000
	// MaxMatches limits the total matches of all patches.
	MaxMatches = 1000
	// MaxAdded limits the total growth of the objects, in bytes.
	MaxAdded = 4 << 20
)

const (
	// Merge is a JSON merge patch (RFC 7386).
	Merge = "Merge"
	// JSON is a list of operations (RFC 6902).
	JSON = "JSON"
)

// Patch is one change of the objects that match its target.
type Patch struct {
	Target Target `json:"target"`
	// Type is Merge or JSON.
	Type  string          `json:"type"`
	Patch json.RawMessage `json:"patch"`
	// Count is the number of objects that must match, at least 1; nil allows any number except 0.
	Count *int `json:"count,omitempty"`

	operations jsonpatch.Patch
	// fields are the paths that the patch changes.
	fields []string
}

// Target selects objects.
type Target struct {
	// Group is empty for the core group.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Namespace and Name must match exactly; empty matches any.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// String returns the target for messages.
func (t Target) String() string {
	kind := t.Kind
	if t.Group != "" {
		kind += "." + t.Group
	}
	return strings.TrimSpace(kind + " " + strings.TrimPrefix(t.Namespace+"/"+t.Name, "/"))
}

func (t Target) matches(id manifest.ID) bool {
	return t.Group == id.Group && t.Kind == id.Kind && (t.Namespace == "" || t.Namespace == id.Namespace) && (t.Name == "" || t.Name == id.Name)
}

const example = `[{target: {group: apps, kind: Deployment, name: web}, type: Merge, patch: {spec: {replicas: 3}}}]`

// Parse parses a list of patches, as YAML or JSON. It refuses unknown fields.
func Parse(value string) ([]Patch, error) {
	var patches []Patch
	if err := yaml.UnmarshalStrict([]byte(value), &patches); err != nil {
		return nil, fmt.Errorf("it must be a list of patches, such as %s: %w", example, err)
	}
	if len(patches) == 0 || len(patches) > MaxPatches {
		return nil, fmt.Errorf("it has %d patches, and must have 1 to %d, such as %s", len(patches), MaxPatches, example)
	}
	operations := 0
	for i := range patches {
		if err := patches[i].parse(); err != nil {
			return nil, fmt.Errorf("patch %d: %w", i+1, err)
		}
		operations += len(patches[i].operations)
	}
	if operations > MaxOperations {
		return nil, fmt.Errorf("its patches have %d operations, and may have at most %d", operations, MaxOperations)
	}
	return patches, nil
}

func (p *Patch) parse() error {
	switch {
	case p.Target.Kind == "":
		return fmt.Errorf("target.kind is missing")
	case p.Target.Group == "" && p.Target.Kind == "Secret":
		return fmt.Errorf("target.kind is Secret: a patch is readable, and a Secret must not be; use the values of the chart")
	case p.Count != nil && *p.Count < 1:
		return fmt.Errorf("count is %d, and must be 1 or more", *p.Count)
	}
	switch p.Type {
	case Merge:
		var fields map[string]any
		if err := json.Unmarshal(p.Patch, &fields); err != nil || len(fields) == 0 {
			return fmt.Errorf("patch of type %s must be an object with fields, such as {spec: {replicas: 3}}", Merge)
		}
		return p.mergeFields(nil, fields)
	case JSON:
		var err error
		if p.operations, err = jsonpatch.DecodePatch(p.Patch); err != nil || len(p.operations) == 0 {
			return fmt.Errorf("patch of type %s must be a list of operations, such as [{op: replace, path: /spec/replicas, value: 3}]", JSON)
		}
		return p.operationFields()
	}
	return fmt.Errorf("type is %q, and must be %s or %s", p.Type, Merge, JSON)
}

func (p *Patch) mergeFields(at manifest.FieldPath, fields map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		path := append(slices.Clone(at), manifest.FieldStep{Field: name})
		if strings.HasPrefix(name, "$") {
			return fmt.Errorf("%s is a directive of strategic merge patches, and this is a JSON merge patch: null deletes a field; to change an item of a list, use type %s", path, JSON)
		}
		if inner, is := fields[name].(map[string]any); is && len(inner) > 0 {
			if err := p.mergeFields(path, inner); err != nil {
				return err
			}
			continue
		}
		p.fields = append(p.fields, path.String())
	}
	return nil
}

func (p *Patch) operationFields() error {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	field := func(pointer string) string {
		var path manifest.FieldPath
		for part := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			path = append(path, manifest.FieldStep{Field: unescape.Replace(part)})
		}
		return path.String()
	}
	for i, operation := range p.operations {
		// An operation without an op has the kind "unknown".
		kind := operation.Kind()
		if !slices.Contains([]string{"add", "remove", "replace", "move", "test"}, kind) {
			return fmt.Errorf("operation %d is %q, and must be add, remove, replace, move or test", i+1, kind)
		}
		path, err := operation.Path()
		if err != nil || !strings.HasPrefix(path, "/") {
			return fmt.Errorf("operation %d has no path of a field, such as /spec/replicas", i+1)
		}
		if kind == "move" {
			from, err := operation.From()
			if err != nil {
				return fmt.Errorf("operation %d has no from, which is the path of a field", i+1)
			}
			p.fields = append(p.fields, field(from))
		}
		if kind != "test" {
			p.fields = append(p.fields, field(path))
		}
	}
	return nil
}

// Applied lists the fields of an object that a patch changed.
type Applied struct {
	// Patch counts from 1.
	Patch     int      `json:"patch"`
	Group     string   `json:"group,omitempty"`
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Fields    []string `json:"fields"`
}

// Apply changes objects in place. Each patch sees the result of the patches before it. Every patch
// must match. After an error the objects must not be used. Errors contain no values.
func Apply(patches []Patch, objects []*manifest.Object) ([]Applied, error) {
	var applied []Applied
	added := 0
	for i, one := range patches {
		matched := 0
		for _, object := range objects {
			if !one.Target.matches(object.ID) {
				continue
			}
			matched++
			if len(applied) == MaxMatches {
				return nil, fmt.Errorf("patch %d: the patches match more than %d objects together: name the targets", i+1, MaxMatches)
			}
			next, err := one.apply(*object)
			if err != nil {
				return nil, fmt.Errorf("patch %d cannot be applied to %s: %w", i+1, object.ID, err)
			}
			if added += max(0, len(next.JSON)-len(object.JSON)); added > MaxAdded {
				return nil, fmt.Errorf("patch %d: the patches make the objects more than %d bytes larger together", i+1, MaxAdded)
			}
			*object = next
			applied = append(applied, Applied{i + 1, object.Group, object.Kind, object.Namespace, object.Name, one.fields})
		}
		switch {
		case matched == 0:
			return nil, fmt.Errorf("patch %d matches no object: its target is %s", i+1, one.Target)
		case one.Count != nil && matched != *one.Count:
			return nil, fmt.Errorf("patch %d matches %d objects, and count is %d: its target is %s", i+1, matched, *one.Count, one.Target)
		}
	}
	return applied, nil
}

func (p *Patch) apply(object manifest.Object) (manifest.Object, error) {
	var changed []byte
	var err error
	if p.Type == JSON {
		changed, err = p.operations.Apply(object.JSON)
	} else {
		changed, err = jsonpatch.MergePatch(object.JSON, p.Patch)
	}
	if err != nil {
		return object, err
	}
	next, err := manifest.Parse(changed)
	if err != nil {
		return object, fmt.Errorf("the object is no manifest afterwards: %w", err)
	}
	if next.Ref.ID != object.Ref.ID || next.Version != object.Version {
		return object, fmt.Errorf("it would be %s of version %s afterwards: apiVersion, kind, name and namespace do not change", next.ID, next.Version)
	}
	return next, nil
}
