package measure

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Machine describes the machine and the date of a measurement in one line. It omits facts that the
// system does not report.
func Machine(now time.Time) string {
	words := []string{now.UTC().Format(time.DateOnly), fmt.Sprintf("%d cores", runtime.NumCPU())}
	if model := procField("/proc/cpuinfo", "model name"); model != "" {
		words[1] += " " + model
	}
	var kilobytes uint64
	if _, err := fmt.Sscanf(procField("/proc/meminfo", "MemTotal"), "%d kB", &kilobytes); err == nil {
		words = append(words, fmt.Sprintf("%.0f GB of memory", MB(kilobytes<<10)/1000))
	}
	words = append(words, runtime.Version(), runtime.GOOS+"/"+runtime.GOARCH)
	if load, err := os.ReadFile("/proc/loadavg"); err == nil && len(strings.Fields(string(load))) > 0 {
		words = append(words, "load "+strings.Fields(string(load))[0])
	}
	return strings.Join(words, ", ")
}

// procField returns the value of the first line "name: value" in a file.
func procField(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(content)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
