package privilege

// begins reports whether a change creates the first revision of an extension, without objects. It
// needs the right authz.Begin.
func (c change) begins(now chainState) bool {
	return c.kind == create && len(now.others) == 0 && len(now.inventory) == 0 && len(refsOf(c.revision)) == 0
}
