package plane

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// commandLines returns the arguments of every process by its id. Kernel threads
// and processes that have ended but were not waited for have none.
func commandLines() (map[int][]string, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	table := map[int][]string{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// An error means that the process ended since the folder was read.
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || len(line) == 0 {
			continue
		}
		table[pid] = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	}
	return table, nil
}
