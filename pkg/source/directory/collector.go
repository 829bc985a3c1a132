package directory

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/text"
)

const maxListDepth = 8

type document struct {
	line int
	text []byte
	json bool
}

// place is the file and line of an object.
type place struct {
	file string
	line int
}

func (p place) String() string {
	return fmt.Sprintf("%s:%d", p.file, p.line)
}

type collector struct {
	objects   []Located
	keep      func(Located) (bool, error)
	read      int
	places    map[manifest.ID]place
	problems  problems
	warn      func(Error)
	unchecked bool
	asHelm    bool
}

func newCollector(limit int) *collector {
	return &collector{places: map[manifest.ID]place{}, problems: problems{limit: limit}}
}

// found returns the collected objects, or all errors. nothing is the error if there are no objects.
func (c *collector) found(nothing string) ([]Located, error) {
	if err := c.problems.err(); err != nil {
		return nil, err
	}
	if !c.unchecked {
		if err := c.withoutNamespaces(); err != nil {
			return nil, err
		}
		if err := c.checkApply(); err != nil {
			return nil, err
		}
	}
	switch {
	case c.read == 0:
		return nil, errors.New(nothing)
	case len(c.objects) == 0:
		return nil, fmt.Errorf("of %s, the filter leaves none", text.Count(c.read, "manifest"))
	}
	return c.objects, nil
}

// withoutNamespaces removes the namespace of objects of cluster-scoped kinds, with a warning, like
// kubectl.
func (c *collector) withoutNamespaces() error {
	scopes := Scopes(c.objects)
	for i := range c.objects {
		one := &c.objects[i]
		inNamespace, defined := scopes[one.GroupKind()]
		if one.Namespace == "" || !source.IsClusterScoped(one.GroupKind()) && (!defined || inNamespace) {
			continue
		}
		moved, err := one.InNamespace("")
		if err != nil {
			return err
		}
		line := one.LineAt("metadata", "namespace")
		if first, twice := c.places[moved.ID]; twice {
			c.problems.add(one.File, line, "%s is already at %s: its kind is cluster-scoped, so it has no namespace, and an object can be in a revision once", moved.ID, first)
			continue
		}
		c.places[moved.ID] = place{one.File, one.Line}
		c.warning(&moved, line, "metadata.namespace is left out, because %s is cluster-scoped", one.GroupKind())
		*one = moved
	}
	return c.problems.err()
}

// Scopes reports which kinds are namespaced, for kinds whose CustomResourceDefinition is among the
// objects.
func Scopes(objects []Located) map[schema.GroupKind]bool {
	scopes := map[schema.GroupKind]bool{}
	for _, one := range objects {
		if !one.IsDefinition() {
			continue
		}
		kind, err := one.DefinedKind()
		content, decodeErr := applycheck.Decode(one.JSON)
		if err != nil || decodeErr != nil {
			continue // source.Sort reports its errors
		}
		spec, _ := content["spec"].(map[string]any)
		scopes[kind] = spec["scope"] != "Cluster"
	}
	return scopes
}

func (c *collector) file(name string, content []byte) {
	text := text.UTF8(content)
	if !utf8.Valid(text) {
		valid := len(bytes.ToValidUTF8(text, nil))
		c.problems.add(name, 0, "not valid UTF-8: %d of %d bytes cannot be read", len(text)-valid, len(text))
		return
	}
	isJSON := strings.HasSuffix(strings.ToLower(name), ".json")
	if isJSON || looksLikeJSON(text) {
		documents, problem := jsonDocuments(text)
		if problem == nil {
			c.documents(name, documents)
			return
		}
		if isJSON {
			c.problems.add(name, problem.line, "%s", problem.message)
			return
		}
		// YAML may also begin with a brace.
	}
	var documents []document
	for _, doc := range yamlDocuments(text, c.asHelm) {
		documents = append(documents, mixed(doc)...)
	}
	c.documents(name, documents)
}

// mixed parses a YAML document as JSON if possible, because JSON may be indented by tabs.
func mixed(doc document) []document {
	if !looksLikeJSON(doc.text) {
		return []document{doc}
	}
	values, problem := jsonDocuments(doc.text)
	if problem != nil {
		return []document{doc}
	}
	for i := range values {
		values[i].line += doc.line - 1
	}
	return values
}

func (c *collector) documents(name string, documents []document) {
	for _, doc := range documents {
		read := readYAML
		if doc.json {
			read = readJSON
		}
		content, root, flaws := read(doc)
		if c.asHelm {
			flaws = c.tolerated(name, flaws)
		}
		for _, flaw := range flaws {
			c.problems.add(name, flaw.line, "%s", flaw.message)
		}
		if content == nil || len(flaws) > 0 {
			continue
		}
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(content, &value); err != nil {
			c.problems.add(name, root.line, "%v", err)
			continue
		}
		c.value(name, value, root, maxListDepth)
	}
}

// tolerated warns of flaws that Helm accepts, and returns the other flaws.
func (c *collector) tolerated(file string, flaws []flaw) []flaw {
	return slices.DeleteFunc(flaws, func(one flaw) bool {
		if one.tolerable && c.warn != nil {
			c.warn(Error{File: file, Line: one.line, Message: one.message + ": the last value counts, as with Helm"})
		}
		return one.tolerable
	})
}

// value adds one object, or all objects of a list.
func (c *collector) value(file string, value any, at *position, depth int) {
	object, ok := value.(map[string]any)
	if !ok {
		c.problems.add(file, at.line, "not a Kubernetes object: want a map with apiVersion, kind and metadata")
		return
	}
	kind, _ := object["kind"].(string)
	apiVersion, _ := object["apiVersion"].(string)
	items, isList := object["items"].([]any)
	if value, given := object["items"]; given && value == nil && apiVersion == "v1" && kind == "List" {
		isList = true // an empty list
	}
	if isList && strings.HasSuffix(kind, "List") {
		if depth == 0 {
			c.problems.add(file, at.line, "lists in lists, more than %d deep", maxListDepth)
			return
		}
		for i, item := range items {
			c.value(file, typed(item, apiVersion, kind), at.element("items", i), depth-1)
		}
		return
	}
	switch {
	case kind == "Kustomization" && strings.HasPrefix(apiVersion, "kustomize.config.k8s.io/"):
		c.problems.add(file, at.line, "%s", toolHint("Kustomization"))
	case object["apiVersion"] == nil && object["kind"] == nil:
		c.problems.add(file, at.line, "not a Kubernetes object: apiVersion and kind are missing")
	default:
		c.object(file, object, at)
	}
}

// typed sets the kind of an item in a list of one kind, such as ConfigMapList, whose items need no
// kind.
func typed(item any, apiVersion, listKind string) any {
	object, ok := item.(map[string]any)
	if !ok || listKind == "List" || object["kind"] != nil || object["apiVersion"] != nil {
		return item
	}
	object["apiVersion"] = apiVersion
	object["kind"] = strings.TrimSuffix(listKind, "List")
	return object
}

func (c *collector) object(file string, object map[string]any, at *position) {
	parsed, err := manifest.Canonical(object)
	if err != nil {
		c.invalid(file, object, at, err)
		return
	}
	c.read++
	located := Located{Object: parsed, File: file, Line: at.line, at: at}
	if c.keep != nil {
		wanted, err := c.keep(located)
		if err != nil {
			c.problems.add(file, at.line, "%v", err)
		}
		if err != nil || !wanted {
			return
		}
	}
	if first, twice := c.places[parsed.ID]; twice {
		c.problems.add(file, at.line, "%s is already at %s: an object can be in a revision once", parsed.ID, first)
		return
	}
	c.places[parsed.ID] = place{file, at.line}
	c.objects = append(c.objects, located)
}

// invalid reports each field on its own line.
func (c *collector) invalid(file string, object map[string]any, at *position, err error) {
	var invalid *manifest.InvalidError
	if !errors.As(err, &invalid) {
		c.problems.add(file, at.line, "%v", err)
		return
	}
	subject := describe(object)
	for _, one := range invalid.Fields {
		c.problems.add(file, at.at(one.Path...), "%s%s", subject, one)
	}
	c.problems.found.Omitted += invalid.Omitted
}

// describe returns the known parts of an object's name, to begin a message.
func describe(object map[string]any) string {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	switch {
	case kind != "" && name != "":
		return kind + " " + name + ": "
	case kind != "":
		return kind + ": "
	default:
		return ""
	}
}
