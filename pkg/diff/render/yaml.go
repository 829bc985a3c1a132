// Package render turns the findings of tree into text: YAML and unified diffs for people, JSON for
// machines. Hidden fields have no value in a tree, so render cannot show them. It escapes
// characters that do not print (printable). The package knows neither the meaning of a change, nor
// the reader.
package render

import (
	"strings"
	"unicode"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/redact"
)

// flowDepth is the depth from which YAML is written as one line of JSON. Otherwise the indentation of
// a hostile manifest would grow with the square of its depth.
const flowDepth = 40

// side selects the old or the new lines.
type side uint8

const (
	bothSides side = iota
	oldSide
	newSide
)

// yamlPrinter writes a delta as lines of YAML, each of which belongs to the old
// manifest, to the new one, or to both.
type yamlPrinter struct {
	hunks *hunks
	stop  func() bool
	// lead has the text that replaces the indentation of the next line of a side: the dashes of
	// list items that wait for their first field.
	lead [2]string
}

// line is a line of YAML behind its indentation. Only the lines at changes are ever
// written, so most are never made.
type line struct {
	// start is the text that replaces the indentation of the line, if any.
	start  string
	indent int
	// name of a field, if it has one.
	name    string
	isField bool
	// value stands behind the name, or is the line; nil is none.
	value *tree.Node
	// text is the rest.
	text string
}

func (l line) String() string {
	var b strings.Builder
	if b.WriteString(l.start); l.start == "" {
		for range l.indent {
			b.WriteByte(' ')
		}
	}
	if l.isField {
		b.WriteString(yamlKey(l.name))
		b.WriteByte(':')
		if l.value != nil || l.text != "" {
			b.WriteByte(' ')
		}
	}
	if l.value != nil {
		b.WriteString(inline(l.value))
	}
	b.WriteString(l.text)
	return b.String()
}

// line prints one line. When the sides begin it differently (the first field of an item
// was added, say) it is a line of each.
func (p *yamlPrinter) line(who side, l line) {
	lines := [2]line{l, l}
	for i, one := range []side{oldSide, newSide} {
		if who == one || who == bothSides {
			lines[i].start, p.lead[i] = p.lead[i], ""
		}
	}
	switch {
	case who == oldSide:
		p.hunks.removed(lines[0].String())
	case who == newSide:
		p.hunks.added(lines[1].String())
	case lines[0].start == lines[1].start:
		p.hunks.context(lines[0])
	default:
		p.hunks.removed(lines[0].String())
		p.hunks.added(lines[1].String())
	}
}

// dash begins an item of a list.
func (p *yamlPrinter) dash(who side, indent int) {
	for i, one := range []side{oldSide, newSide} {
		if who != one && who != bothSides {
			continue
		}
		if p.lead[i] == "" {
			p.lead[i] = strings.Repeat(" ", indent)
		}
		p.lead[i] += "- "
	}
}

// object prints the fields of an object, or what became of them.
func (p *yamlPrinter) object(who side, n *tree.Node, indent int) {
	for _, f := range n.Fields() {
		p.entry(who, f.Name, f.Value, indent)
	}
}

// entry prints one field.
func (p *yamlPrinter) entry(who side, name string, value *tree.Node, indent int) {
	field := line{indent: indent, name: name, isField: true}
	switch {
	case p.isInline(value, indent):
		field.value = value
		p.line(who, field)
	case value.Kind() == tree.Scalar:
		header, lines := block(value.Str())
		field.text = header
		p.line(who, field)
		for _, content := range lines {
			p.blockLine(who, indent+2, content)
		}
	case value.Kind() == tree.Object:
		p.line(who, field)
		p.object(who, value, indent+2)
	default:
		p.line(who, field)
		p.list(who, value, indent)
	}
}

func (p *yamlPrinter) list(who side, n *tree.Node, indent int) {
	for _, item := range n.Items() {
		p.item(who, item, indent)
	}
}

// item prints one item of a list. Texts of several lines are quoted here: they
// are rare, and their indentation is where YAML parsers disagree.
func (p *yamlPrinter) item(who side, value *tree.Node, indent int) {
	p.dash(who, indent)
	switch {
	case value.Kind() == tree.Scalar || p.isInline(value, indent):
		p.line(who, line{indent: indent + 2, value: value})
	case value.Kind() == tree.Object:
		p.object(who, value, indent+2)
	default:
		p.list(who, value, indent+2)
	}
}

// blockLine prints a line of a literal text. An empty one has no indentation.
func (p *yamlPrinter) blockLine(who side, indent int, content string) {
	if content == "" {
		indent = 0
	}
	p.line(who, line{indent: indent, text: content})
}

// isInline reports whether a value stands on the line of its key.
func (p *yamlPrinter) isInline(n *tree.Node, indent int) bool {
	switch {
	case n.Kind() == tree.Hidden || n.IsEmpty() || indent >= 2*flowDepth || p.stop():
		return true
	case n.Kind() == tree.Scalar:
		header, _ := block(n.Str())
		return header == ""
	}
	return false
}

// inline writes a value on one line.
func inline(n *tree.Node) string {
	switch n.Kind() {
	case tree.Hidden:
		return printable.Quote(redact.Hidden)
	case tree.Scalar:
		if s, ok := n.Scalar().(string); ok {
			return yamlString(s)
		}
		return printable.Scalar(n.Scalar())
	default:
		var w jsonWriter
		w.write(n, 0)
		return w.String()
	}
}

// block splits a text of several lines for a literal block of YAML, and returns
// the header of the block; empty when the text has to be quoted.
func block(s string) (header string, lines []string) {
	if !strings.Contains(s, "\n") {
		return "", nil
	}
	body, ends := strings.CutSuffix(s, "\n")
	if body == "" || strings.ContainsAny(body[:1], " \t\n") || strings.HasSuffix(body, "\n") {
		return "", nil
	}
	for _, r := range body {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return "", nil
		}
	}
	lines = strings.Split(body, "\n")
	for _, content := range lines {
		// A line of nothing but blanks is read as an empty one, by some.
		if content != "" && strings.Trim(content, " \t") == "" {
			return "", nil
		}
	}
	if ends {
		return "|", lines
	}
	return "|-", lines
}

func yamlKey(name string) string {
	return yamlString(name)
}

// yamlString writes a string as it is where no parser can take it for something
// else, and quoted otherwise.
func yamlString(s string) string {
	if isPlain(s) {
		return s
	}
	return printable.QuoteYAML(s)
}

// isPlain is stricter than YAML: plain are words, paths, images and flags.
func isPlain(s string) bool {
	if s == "" || !printable.Is(s) || strings.HasSuffix(s, " ") || strings.HasSuffix(s, ":") ||
		strings.Contains(s, ": ") || strings.Contains(s, " #") {
		return false
	}
	start := strings.TrimLeft(s, "-")
	if len(s)-len(start) > 2 || start == "" {
		return false
	}
	first := start[0]
	if (first < 'a' || first > 'z') && (first < 'A' || first > 'Z') && (first != '/' || s != start) {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		return false
	}
	return true
}
