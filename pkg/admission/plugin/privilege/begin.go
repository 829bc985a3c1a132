package privilege

// beginning is the right to begin an extension with a revision that has no objects.
//
// The name of an extension is worth something: its numbers are used for ever, and what
// succeeded in it is gone back to. Whoever begins one with objects has the rights to
// them, which is what Privilege asks for; without objects there would be nothing to ask.
func beginning(chain string) right {
	return right{verb: "begin", group: "policy.penstock.dev", resource: "extensions", name: chain}
}

// begins tells whether a change begins an extension, of which there is nothing yet or any
// more, without any object.
func (c change) begins(now standing) bool {
	return c.kind == create && len(now.others) == 0 && len(now.inventory) == 0 && len(refsOf(c.revision)) == 0
}
