//go:build !linux

package plane

import (
	"os/exec"
	"strconv"
	"strings"
)

// commandLines returns the arguments of every process by its id, as ps splits them: an argument
// with spaces is split.
func commandLines() (map[int][]string, error) {
	out, err := exec.Command("ps", "-axww", "-o", "pid=,command=").Output()
	if err != nil {
		return nil, err
	}
	table := map[int][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if pid, err := strconv.Atoi(fields[0]); err == nil {
			table[pid] = fields[1:]
		}
	}
	return table, nil
}

// ended returns true: a process without a command line has ended, and there are no namespaces.
func ended(int) bool { return true }
