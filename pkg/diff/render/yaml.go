// Package render converts the results of tree to text: YAML and unified diffs for users, JSON for
// programs. Hidden fields have no value in a tree, so render cannot show them. Unprintable
// characters are escaped.
package render

import (
	"strings"
	"unicode"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/redact"
)

// flowDepth is the depth from which YAML is written as one line of JSON. Otherwise the indentation
// of a hostile manifest would grow with the square of its depth.
const flowDepth = 40

type side uint8

const (
	bothSides side = iota
	oldSide
	newSide
)

// yamlPrinter writes a delta as lines of YAML. Each line belongs to the old manifest, to the new
// one, or to both.
type yamlPrinter struct {
	hunks *hunks
	stop  func() bool
	// lead is the text that replaces the indentation of the next line of a side: the dashes of list
	// items before their first field.
	lead [2]string
}

// line is a line of YAML without its indentation. It is formatted only when it is written, because
// most lines are not near a change.
type line struct {
	// start is the text that replaces the indentation of the line, if any.
	start   string
	indent  int
	name    string
	isField bool
	// value follows the name, or is the whole line; nil for no value.
	value *tree.Node
	text  string
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

// line prints one line. If its beginning differs between the sides, because a list item has a new
// first field, it prints a line for each side.
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

// dash starts an item of a list.
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

func (p *yamlPrinter) object(who side, n *tree.Node, indent int) {
	for _, f := range n.Fields() {
		p.entry(who, f.Name, f.Value, indent)
	}
}

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

// item prints one item of a list. Texts of several lines are quoted here: they are rare, and YAML
// parsers disagree about their indentation.
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

// blockLine prints a line of a block text. An empty line has no indentation.
func (p *yamlPrinter) blockLine(who side, indent int, content string) {
	if content == "" {
		indent = 0
	}
	p.line(who, line{indent: indent, text: content})
}

// isInline reports whether a value is printed on the line of its key.
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

// block splits a text of several lines for a literal block of YAML, and returns the header of the
// block; empty if the text must be quoted.
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
		// Some parsers read a line of only blanks as an empty line.
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

// yamlString returns a string unquoted if all parsers read it as that string, and otherwise quoted.
func yamlString(s string) string {
	if isPlain(s) {
		return s
	}
	return printable.QuoteYAML(s)
}

// isPlain reports whether a string needs no quotes. It is stricter than YAML: only words, paths,
// images and flags are plain.
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
