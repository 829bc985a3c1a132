package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// leftovers returns the command lines of processes that the demo started: its programs with a path
// in the demo's folder as argument. A user's `tail -f` of a log there does not count.
func leftovers(dir string) ([]string, error) {
	table, err := commandLines()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	var left []string
	for _, args := range table {
		if startedFor(dir, args) {
			left = append(left, strings.Join(args, " "))
		}
	}
	return left, nil
}

func startedFor(dir string, args []string) bool {
	ours := []string{"penstock", "kubectl", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"}
	return len(args) > 0 && slices.Contains(ours, filepath.Base(args[0])) &&
		slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(arg, dir+string(filepath.Separator)) })
}

// commandLines returns the arguments of every process, from /proc or else from ps. ps splits
// arguments at spaces.
func commandLines() ([][]string, error) {
	var table [][]string
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		out, err := exec.Command("ps", "-axww", "-o", "command=").Output()
		for line := range strings.Lines(string(out)) {
			table = append(table, strings.Fields(line))
		}
		return table, err
	}
	for _, file := range files {
		// An error means that the process has exited since the folder was read.
		if content, err := os.ReadFile(file); err == nil && len(content) > 0 {
			table = append(table, strings.Split(string(content), "\x00"))
		}
	}
	return table, nil
}
