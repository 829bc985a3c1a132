package privilege

// begins reports whether a change begins an extension, of which there is nothing yet or any more,
// without any object. That takes the right right.Begin.
func (c change) begins(now chainState) bool {
	return c.kind == create && len(now.others) == 0 && len(now.inventory) == 0 && len(refsOf(c.revision)) == 0
}
