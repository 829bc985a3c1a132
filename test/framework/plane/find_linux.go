package plane

import (
	"bytes"
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

// ended is true of a process that has ended, whether or not its parent has seen that. A process loses its
// command line first and its files next. The first process of a namespace ends after all others there.
func ended(pid int) bool {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	// The name of the program is in parentheses, and may have others.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	const state, threads = 0, 17
	// The first thread may end before the other threads.
	return len(fields) > threads && (fields[state] == "Z" || fields[state] == "X") && (fields[threads] == "0" || fields[threads] == "1")
}
