// Package reference reads commands from the pages of docs/reference, so that tests run exactly
// these commands.
package reference

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// Commands returns the commands of a reason from the table under a heading of a page. The commands
// use the example names: extension argocd, its revision argocd-2 and plan rebalance.
func Commands(t testing.TB, page, heading, reason string) []string {
	t.Helper()
	root, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "docs", "reference", page))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(content), "## "+heading+"\n\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.Contains(cells[1], "`"+reason+"`") || strings.TrimSpace(cells[5]) == "" {
			continue
		}
		var commands []string
		for command := range strings.SplitSeq(strings.TrimSpace(cells[5]), "<br>") {
			commands = append(commands, strings.Trim(command, "`"))
		}
		return commands
	}
	t.Fatalf("%s has no command for the reason %s", page, reason)
	return nil
}

// Words splits a command into words like a shell; single quotes group.
func Words(command string) []string {
	var words []string
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
