package render

import (
	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/redact"
)

func (p *yamlPrinter) fieldsDelta(d tree.Delta, indent int) {
	for _, c := range d.Children {
		p.entryDelta(c, indent)
	}
}

func (p *yamlPrinter) entryDelta(c tree.Child, indent int) {
	field := line{indent: indent, name: c.Name, isField: true}
	switch c.Op {
	case tree.Same:
		// New is nil if the new manifest only implies the value.
		if c.New != nil {
			p.entry(bothSides, c.Name, c.New, indent)
		}
	case tree.Added:
		p.entry(newSide, c.Name, c.New, indent)
	case tree.Removed:
		p.entry(oldSide, c.Name, c.Old, indent)
	case tree.Replaced:
		p.entryReplaced(c, indent)
	case tree.Inside:
		switch {
		case !p.canDescend(c.Delta, indent):
			p.entry(oldSide, c.Name, c.Old, indent)
			p.entry(newSide, c.Name, c.New, indent)
		case c.New.Kind() == tree.Object:
			p.line(bothSides, field)
			p.fieldsDelta(c.Delta, indent+2)
		default:
			p.line(bothSides, field)
			p.itemsDelta(c.Delta, indent)
		}
	}
}

// before and after replace the values of a changed hidden field.
func before() string { return printable.Quote(redact.Hidden + " (before)") }
func after() string  { return printable.Quote(redact.Hidden + " (after)") }

// entryReplaced prints the old value and the new one; of two block texts, it prints the common
// lines once.
func (p *yamlPrinter) entryReplaced(c tree.Child, indent int) {
	field := line{indent: indent, name: c.Name, isField: true}
	if c.Old.Kind() == tree.Hidden && c.New.Kind() == tree.Hidden {
		field.text = before()
		p.line(oldSide, field)
		field.text = after()
		p.line(newSide, field)
		return
	}
	oldHeader, oldLines := block(c.Old.Str())
	newHeader, newLines := block(c.New.Str())
	if oldHeader == "" || oldHeader != newHeader || p.isInline(c.New, indent) {
		p.entry(oldSide, c.Name, c.Old, indent)
		p.entry(newSide, c.Name, c.New, indent)
		return
	}
	field.text = newHeader
	p.line(bothSides, field)
	pairs := tree.AlignLines(oldLines, newLines, p.stop)
	i, j := 0, 0
	for _, equal := range append(pairs, tree.Pair{Old: len(oldLines), New: len(newLines)}) {
		for ; i < equal.Old; i++ {
			p.blockLine(oldSide, indent+2, oldLines[i])
		}
		for ; j < equal.New; j++ {
			p.blockLine(newSide, indent+2, newLines[j])
		}
		if i < len(oldLines) {
			p.blockLine(bothSides, indent+2, newLines[j])
			i, j = i+1, j+1
		}
	}
}

func (p *yamlPrinter) itemsDelta(d tree.Delta, indent int) {
	for _, c := range d.Children {
		switch {
		case c.Moved == tree.MovedHere || c.Op == tree.Added:
			p.item(newSide, c.New, indent)
		case c.Moved == tree.MovedAway || c.Op == tree.Removed:
			p.item(oldSide, c.Old, indent)
		case c.Op == tree.Same:
			p.item(bothSides, c.New, indent)
		case c.Op == tree.Replaced && c.Old.Kind() == tree.Hidden && c.New.Kind() == tree.Hidden:
			p.dash(bothSides, indent)
			p.line(oldSide, line{indent: indent + 2, text: before()})
			p.line(newSide, line{indent: indent + 2, text: after()})
		case c.Op == tree.Replaced || !p.canDescend(c.Delta, indent):
			p.item(oldSide, c.Old, indent)
			p.item(newSide, c.New, indent)
		case c.New.Kind() == tree.Object:
			p.dash(bothSides, indent)
			p.fieldsDelta(c.Delta, indent+2)
		default:
			p.dash(bothSides, indent)
			p.itemsDelta(c.Delta, indent+2)
		}
	}
}

// canDescend reports whether both sides have content to print on separate lines.
func (p *yamlPrinter) canDescend(d tree.Delta, indent int) bool {
	if p.isInline(d.Old, indent) || p.isInline(d.New, indent) {
		return false
	}
	onOld, onNew := false, false
	for _, c := range d.Children {
		impliedOnly := c.Op == tree.Same && c.New == nil
		if impliedOnly {
			continue
		}
		onOld = onOld || c.Moved != tree.MovedHere && (c.Old != nil || c.Op == tree.Same)
		onNew = onNew || c.Moved != tree.MovedAway && c.New != nil
	}
	return onOld && onNew
}
