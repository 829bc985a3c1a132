package measure

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is what a process has resident, in bytes.
type Memory struct {
	// RSS is all of it: Anon and File.
	RSS uint64
	// Anon is the heap and the stacks.
	Anon uint64
	// File is the program and files that are mapped, such as a database: the
	// kernel drops it when somebody needs the memory.
	File uint64
	// Peak is the highest RSS that there was.
	Peak uint64
}

// MemoryOf reads the memory of a process on Linux.
func MemoryOf(pid int) (Memory, error) {
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return Memory{}, fmt.Errorf("reading the memory of process %d (Linux only): %w", pid, err)
	}
	defer file.Close()
	var m Memory
	fields := map[string]*uint64{"VmRSS:": &m.RSS, "RssAnon:": &m.Anon, "RssFile:": &m.File, "VmHWM:": &m.Peak}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || fields[words[0]] == nil {
			continue
		}
		kilobytes, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("reading %s of process %d: %w", words[0], pid, err)
		}
		*fields[words[0]] = kilobytes << 10
	}
	return m, lines.Err()
}

// MB are millions of bytes, as a target means them.
func MB[N int | int64 | uint64](bytes N) float64 { return float64(bytes) / 1e6 }
