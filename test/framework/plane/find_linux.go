package plane

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// commandLines returns the arguments of every process by its id. Kernel threads and zombies have no
// arguments.
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
		// The process may have ended since the folder was read.
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || len(line) == 0 {
			continue
		}
		table[pid] = strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
	}
	return table, nil
}

// ended reports whether a process has ended, also if it is still a zombie. An ending process loses
// its command line first and its files next. The first process of a PID namespace ends after all
// other processes of the namespace.
func ended(pid int) bool {
	content, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	// The program's name is in parentheses, and can contain parentheses.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	const state, threads = 0, 17
	// The first thread can end before the remaining threads.
	return len(fields) > threads && (fields[state] == "Z" || fields[state] == "X") && (fields[threads] == "0" || fields[threads] == "1")
}
