package directory

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/text"
)

// Each document is parsed twice. sigs.k8s.io/yaml reads its values, as kubectl does (YAML 1.1: an
// unquoted yes is a boolean). The node tree of yaml.v3 has their lines.

// yamlDocuments splits a stream at its document markers. For Helm, every line that begins with
// "---" is a marker, also if a template has joined the next line to it.
func yamlDocuments(content []byte, asHelm bool) []document {
	var documents []document
	current := document{line: 1}
	for number, line := range bytes.SplitAfter(content, []byte("\n")) {
		isMarker, rest := documentMarker(bytes.TrimPrefix(line, []byte(text.ByteOrderMark)))
		if joined, begins := bytes.CutPrefix(line, []byte("---")); asHelm && begins && !isMarker {
			isMarker, rest = true, joined
		}
		if !isMarker {
			if len(bytes.TrimSpace(current.text)) == 0 {
				line = bytes.TrimPrefix(line, []byte(text.ByteOrderMark)) // a file that was concatenated with others has one
			}
			current.text = append(current.text, line...)
			continue
		}
		documents = append(documents, current)
		// Text after the marker belongs to the document, and keeps its column.
		current = document{line: number + 1, text: rest}
	}
	return append(documents, current)
}

// documentMarker reports whether a line begins or ends a document: it begins with "---" or "...",
// followed by nothing or by white space.
func documentMarker(line []byte) (ok bool, rest []byte) {
	if !bytes.HasPrefix(line, []byte("---")) && !bytes.HasPrefix(line, []byte("...")) {
		return false, nil
	}
	if rest := line[3:]; len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0])) {
		return true, append([]byte("   "), rest...)
	}
	return false, nil
}

// readYAML returns the document as JSON, nil if it is empty, and the position of each value.
func readYAML(doc document) (content []byte, root *position, flaws []flaw) {
	var node yamlv3.Node
	parse := func(text []byte) error {
		node = yamlv3.Node{}
		return yamlv3.Unmarshal(text, &node)
	}
	if err := parse(doc.text); err != nil {
		return nil, nil, []flaw{syntaxFlaw(doc, parse, err)}
	}
	if node.Kind == 0 || isNull(node.Content[0]) {
		return nil, nil, nil
	}
	reader := yamlReader{offset: doc.line - 1}
	root = reader.position(node.Content[0])
	if slices.ContainsFunc(reader.flaws, func(one flaw) bool { return !one.tolerable }) {
		return nil, nil, reader.flaws
	}
	convert := func(text []byte) (err error) {
		content, err = yaml.YAMLToJSON(text)
		return err
	}
	if err := convert(doc.text); err != nil {
		return nil, nil, []flaw{syntaxFlaw(doc, convert, err)}
	}
	return content, root, reader.flaws
}

func isNull(node *yamlv3.Node) bool {
	return node.Kind == yamlv3.ScalarNode && node.ShortTag() == "!!null"
}

// syntaxFlaw finds the line of a syntax error: the shortest beginning of the document that has the
// same error ends there. The parser's own line is often the line of the enclosing block, off by
// one, or missing.
func syntaxFlaw(doc document, parse func([]byte) error, err error) flaw {
	message := withoutLine(err)
	lines := bytes.SplitAfter(doc.text, []byte("\n"))
	n := 1 + sort.Search(len(lines)-1, func(i int) bool {
		prefix := parse(bytes.Join(lines[:i+1], nil))
		return prefix != nil && withoutLine(prefix) == message
	})
	return flaw{line: doc.line + n - 1, message: "not valid YAML: " + message}
}

func withoutLine(err error) string {
	var types *yamlv3.TypeError
	if errors.As(err, &types) && len(types.Errors) > 0 {
		return types.Errors[0]
	}
	message := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	message = strings.TrimPrefix(message, "yaml: ")
	return regexp.MustCompile(`^line \d+: `).ReplaceAllString(message, "")
}

type yamlReader struct {
	// offset is the number of lines before the document.
	offset int
	flaws  []flaw
}

func (r *yamlReader) position(node *yamlv3.Node) *position {
	p := &position{line: r.offset + node.Line}
	switch node.Kind {
	case yamlv3.MappingNode:
		p.keys = make(map[string]*position, len(node.Content)/2)
		for i := 0; i+1 < len(node.Content); i += 2 {
			r.member(p, node.Content[i], node.Content[i+1])
		}
	case yamlv3.SequenceNode:
		for _, child := range node.Content {
			p.items = append(p.items, r.position(child))
		}
	}
	// Aliases are not expanded: a few lines could become gigabytes.
	return p
}

func (r *yamlReader) member(p *position, key, value *yamlv3.Node) {
	if key.Kind == yamlv3.ScalarNode && key.ShortTag() == "!!merge" {
		// The fields of a merged map have no line of their own here.
		r.position(value)
		return
	}
	line := r.offset + key.Line
	if problem := badKey(key); problem != "" {
		r.flaws = append(r.flaws, flaw{line, problem, key.Kind == yamlv3.ScalarNode})
		if key.Kind != yamlv3.ScalarNode {
			return
		}
	}
	if first, twice := p.keys[key.Value]; twice {
		r.flaws = append(r.flaws, flaw{line, fmt.Sprintf("key %q is already on line %d", key.Value, first.line), true})
	}
	child := r.position(value)
	child.line = line
	p.keys[key.Value] = child
}

// badKey returns the reason why a key cannot be a JSON key, or differs from its text.
func badKey(key *yamlv3.Node) string {
	if key.Kind == yamlv3.AliasNode {
		return "an alias as a key: write the key itself"
	}
	if key.Kind != yamlv3.ScalarNode {
		return "a key that is a map or a list: is this a template that was not rendered?"
	}
	if key.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) != 0 || key.ShortTag() == "!!str" && !isYAML11Bool(key.Value) {
		return ""
	}
	// Integers are allowed, because some ConfigMaps have port numbers as keys. Other spellings of
	// an integer (0x50, 8_0) could collide with the plain one unnoticed.
	if n, err := strconv.ParseInt(key.Value, 10, 64); err == nil && strconv.FormatInt(n, 10) == key.Value {
		return ""
	}
	return fmt.Sprintf("key %s is read as another value than its text: put it in quotes", key.Value)
}

// isYAML11Bool reports whether kubectl parses an unquoted scalar as a boolean, although it is text
// in YAML 1.2.
func isYAML11Bool(text string) bool {
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return false
}
