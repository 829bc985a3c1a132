package reads

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
)

// restPart limits the processor time of a process at rest to 1/restPart of a processor.
const restPart = 20

// memoryTargets limit the memory of Penstock beyond an empty Penstock, in MB.
type memoryTargets struct{ filled, restarted float64 }

// emptyMemory limits the heap and stacks of an empty Penstock, in MB.
const emptyMemory = 40

func meanMemory() memoryTargets  { return memoryTargets{filled: 85, restarted: 50} }
func sixtyMemory() memoryTargets { return memoryTargets{filled: 140, restarted: 80} }

// memory fills the store and compares the resident memory of Penstock, empty and full, each time at
// rest. It measures again after a restart, when memory only has data that was read.
func (b *bench) memory(targets memoryTargets) {
	b.t.Helper()
	empty := b.resident("empty", measure.Memory{})
	b.report.AtMost("heap and stacks of an empty server", emptyMemory, measure.MB(empty.Anon), "MB")
	b.fill()
	filled := b.resident("filled", empty)
	b.restart()
	b.settle()
	restarted := b.resident("restarted", empty)
	for _, state := range []struct {
		name   string
		memory measure.Memory
		target float64
	}{{"filled", filled, targets.filled}, {"restarted", restarted, targets.restarted}} {
		b.report.AtMost(fmt.Sprintf("memory above empty, %d revisions of %d objects, %s", b.settings.revisions, b.operator.Objects, state.name),
			state.target, measure.MB(state.memory.RSS)-measure.MB(empty.RSS), "MB")
	}
}

// resident waits for rest and adds a row to the table.
func (b *bench) resident(state string, empty measure.Memory) measure.Memory {
	b.t.Helper()
	b.rest(state)
	m, err := measure.MemoryOf(b.server.Pid())
	if err != nil {
		b.t.Fatal(err)
	}
	b.profileHeap(fmt.Sprintf("%d objects %s", b.operator.Objects, state))
	above := ""
	if empty.RSS > 0 {
		above = fmt.Sprintf("%.0f", measure.MB(m.RSS)-measure.MB(empty.RSS))
	}
	mb := func(n uint64) string { return fmt.Sprintf("%.0f", measure.MB(n)) }
	b.report.Table("Memory of penstock at rest, MB", "revisions", "state", "resident", "above empty", "heap and stacks", "mapped files", "peak", "database").
		Row(fmt.Sprintf("%d of %d objects", b.settings.revisions, b.operator.Objects), state, mb(m.RSS), above, mb(m.Anon), mb(m.File), mb(m.Peak), mb(b.database()))
	return m
}

// rest waits until Penstock is nearly idle. Work after a start or a change takes longer on a loaded
// machine.
func (b *bench) rest(state string) {
	b.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		b.say("waiting %s for memory at rest, %s", b.settings.rest, state)
		before, err := measure.CPUOf(b.server.Pid())
		if err != nil {
			b.t.Fatal(err)
		}
		b.pause(b.settings.rest)
		after, err := measure.CPUOf(b.server.Pid())
		if err != nil {
			b.t.Fatal(err)
		}
		if after-before < b.settings.rest/restPart {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("penstock does not come to rest: it took %s of processor time in %s", after-before, b.settings.rest)
		}
	}
}

// database returns the size of the store's file, in bytes. The file is mapped, so its pages that
// were read since the start count as resident.
func (b *bench) database() uint64 {
	b.t.Helper()
	info, err := os.Stat(filepath.Join(b.dataDir, "etcd", "member", "snap", "db"))
	if err != nil {
		b.t.Fatal(err)
	}
	return uint64(info.Size())
}

// peerMemory adds the resident memory that kube-apiserver reports, as the cost of the custom
// resources.
func (b *bench) peerMemory(state string) {
	b.t.Helper()
	response, err := b.host.do(b.t.Context(), http.MethodGet, "/metrics", "text/plain", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer response.Body.Close()
	const metric = "process_resident_memory_bytes "
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if text, found := strings.CutPrefix(lines.Text(), metric); found {
			bytes, err := strconv.ParseFloat(text, 64)
			if err != nil {
				b.t.Fatal(err)
			}
			b.report.Table("Memory of kube-apiserver, MB", "custom resources", "resident").Row(state, fmt.Sprintf("%.0f", bytes/1e6))
			return
		}
	}
	b.t.Fatalf("kube-apiserver has no metric %s", metric)
}
