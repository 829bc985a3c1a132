package diff

// fieldsDelta prints what became of the fields of an object.
func (p *yamlPrinter) fieldsDelta(d delta, indent int) {
	for _, c := range d.children {
		p.entryDelta(c, indent)
	}
}

// entryDelta prints what became of one field.
func (p *yamlPrinter) entryDelta(c child, indent int) {
	key := yamlKey(c.name) + ":"
	switch c.op {
	case deltaSame:
		// What only the old manifest spells out is implied by the new one.
		if c.new != nil {
			p.entry(bothSides, c.name, c.new, indent)
		}
	case deltaAdded:
		p.entry(newSide, c.name, c.new, indent)
	case deltaRemoved:
		p.entry(oldSide, c.name, c.old, indent)
	case deltaReplaced:
		p.entryReplaced(c, indent)
	case deltaInside:
		switch {
		case !p.canDescend(c.delta, indent):
			p.entry(oldSide, c.name, c.old, indent)
			p.entry(newSide, c.name, c.new, indent)
		case c.new.kind == objectNode:
			p.line(bothSides, indent, key)
			p.fieldsDelta(c.delta, indent+2)
		default:
			p.line(bothSides, indent, key)
			p.itemsDelta(c.delta, indent)
		}
	}
}

// entryReplaced prints the old value and the new one, of two texts only the
// lines that differ.
func (p *yamlPrinter) entryReplaced(c child, indent int) {
	key := yamlKey(c.name) + ":"
	if c.old.kind == hiddenNode && c.new.kind == hiddenNode {
		p.line(oldSide, indent, key+" "+quote(hiddenText+" (before)"))
		p.line(newSide, indent, key+" "+quote(hiddenText+" (after)"))
		return
	}
	oldHeader, oldLines := block(c.old.str())
	newHeader, newLines := block(c.new.str())
	if oldHeader == "" || oldHeader != newHeader || p.isInline(c.new, indent) {
		p.entry(oldSide, c.name, c.old, indent)
		p.entry(newSide, c.name, c.new, indent)
		return
	}
	p.line(bothSides, indent, key+" "+newHeader)
	ids := make(map[string]int)
	pairs := align(lineIDs(ids, oldLines), lineIDs(ids, newLines), p.stop)
	i, j := 0, 0
	for _, equal := range append(pairs, pair{len(oldLines), len(newLines)}) {
		for ; i < equal.old; i++ {
			p.blockLine(oldSide, indent+2, oldLines[i])
		}
		for ; j < equal.new; j++ {
			p.blockLine(newSide, indent+2, newLines[j])
		}
		if i < len(oldLines) {
			p.blockLine(bothSides, indent+2, newLines[j])
			i, j = i+1, j+1
		}
	}
}

func lineIDs(ids map[string]int, lines []string) []int {
	out := make([]int, 0, len(lines))
	for _, content := range lines {
		id, known := ids[content]
		if !known {
			id = len(ids)
			ids[content] = id
		}
		out = append(out, id)
	}
	return out
}

// itemsDelta prints what became of the items of a list.
func (p *yamlPrinter) itemsDelta(d delta, indent int) {
	for _, c := range d.children {
		switch {
		case c.moved == movedHere || c.op == deltaAdded:
			p.item(newSide, c.new, indent)
		case c.moved == movedAway || c.op == deltaRemoved:
			p.item(oldSide, c.old, indent)
		case c.op == deltaSame:
			p.item(bothSides, c.new, indent)
		case c.op == deltaReplaced && c.old.kind == hiddenNode && c.new.kind == hiddenNode:
			p.dash(bothSides, indent)
			p.line(oldSide, indent+2, quote(hiddenText+" (before)"))
			p.line(newSide, indent+2, quote(hiddenText+" (after)"))
		case c.op == deltaReplaced || !p.canDescend(c.delta, indent):
			p.item(oldSide, c.old, indent)
			p.item(newSide, c.new, indent)
		case c.new.kind == objectNode:
			p.dash(bothSides, indent)
			p.fieldsDelta(c.delta, indent+2)
		default:
			p.dash(bothSides, indent)
			p.itemsDelta(c.delta, indent+2)
		}
	}
}

// canDescend tells whether both sides have something to print inside, on lines
// of their own.
func (p *yamlPrinter) canDescend(d delta, indent int) bool {
	if p.isInline(d.old, indent) || p.isInline(d.new, indent) {
		return false
	}
	onOld, onNew := false, false
	for _, c := range d.children {
		impliedOnly := c.op == deltaSame && c.new == nil
		if impliedOnly {
			continue
		}
		onOld = onOld || c.moved != movedHere && (c.old != nil || c.op == deltaSame)
		onNew = onNew || c.moved != movedAway && c.new != nil
	}
	return onOld && onNew
}
