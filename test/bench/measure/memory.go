package measure

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Memory is the resident memory of a process, in bytes.
type Memory struct {
	// RSS is the resident memory: Anon and File.
	RSS uint64
	// Anon is the heap and the stacks.
	Anon uint64
	// File is the memory of the program and of mapped files, such as a database. The kernel can
	// drop it when other processes need memory.
	File uint64
	// Peak is the highest RSS so far.
	Peak uint64
}

// MemoryOf reads the memory of a process and its children on Linux, because the embedded etcd is a
// child process. Shared pages of the program count twice.
func MemoryOf(pid int) (Memory, error) {
	all, err := memoryOf(pid)
	if err != nil {
		return Memory{}, err
	}
	for _, child := range ChildrenOf(pid) {
		one, err := memoryOf(child)
		if err != nil {
			continue // the process has ended
		}
		all.RSS, all.Anon, all.File, all.Peak = all.RSS+one.RSS, all.Anon+one.Anon, all.File+one.File, all.Peak+one.Peak
	}
	return all, nil
}

// ChildrenOf returns the child processes of a process.
func ChildrenOf(parent int) []int {
	var children []int
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		// See proc_pid_stat(5): the name is in parentheses and may contain parentheses; then come
		// the state and the parent.
		_, rest, ok := strings.Cut(string(content[max(0, strings.LastIndexByte(string(content), ')')):]), ") ")
		words := strings.Fields(rest)
		if !ok || len(words) < 2 || words[1] != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			children = append(children, pid)
		}
	}
	return children
}

func memoryOf(pid int) (Memory, error) {
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

// MB converts bytes to millions of bytes, the unit of targets.
func MB[N int | int64 | uint64](bytes N) float64 { return float64(bytes) / 1e6 }
