package reads

import (
	"fmt"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// memory fills the store and compares what Penstock has resident, empty and
// full, each time at rest; a second time after a restart, because what was
// written is not in memory then in any other way than what was read.
func (b *bench) memory(target float64) {
	b.t.Helper()
	empty := b.resident("empty", measure.Memory{})
	b.fill()
	filled := b.resident("filled", empty)
	b.restart()
	b.settle()
	restarted := b.resident("restarted", empty)
	for name, m := range map[string]measure.Memory{"filled": filled, "restarted": restarted} {
		b.report.AtMost(fmt.Sprintf("memory above empty, %d revisions of %d objects, %s", b.settings.revisions, b.operator.Objects, name),
			target, measure.MB(m.RSS)-measure.MB(empty.RSS), "MB")
	}
}

// resident waits for rest and adds a row.
func (b *bench) resident(state string, empty measure.Memory) measure.Memory {
	b.t.Helper()
	b.say("waiting %s for memory at rest, %s", b.settings.rest, state)
	b.pause(b.settings.rest)
	m, err := measure.MemoryOf(b.server.Pid())
	if err != nil {
		b.t.Fatal(err)
	}
	above := ""
	if empty.RSS > 0 {
		above = fmt.Sprintf("%.0f", measure.MB(m.RSS)-measure.MB(empty.RSS))
	}
	mb := func(n uint64) string { return fmt.Sprintf("%.0f", measure.MB(n)) }
	b.report.Table("Memory of penstock at rest, MB", "revisions", "state", "resident", "above empty", "heap and stacks", "mapped files", "peak").
		Row(fmt.Sprintf("%d of %d objects", b.settings.revisions, b.operator.Objects), state, mb(m.RSS), above, mb(m.Anon), mb(m.File), mb(m.Peak))
	return m
}
