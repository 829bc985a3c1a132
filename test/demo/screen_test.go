package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func perform(s *screen) {
	s.title("1 of 2: install")
	s.why("because")
	s.command("kubectl get cer |\nhead")
	s.pass("waiting for %s", "deploy")
	s.output("NAME\tAGE  \nx   1s\n")
	s.ok("%d of %d", 1, 2)
	s.note("so it is")
	s.wrong("not so")
	s.detail("expected  1")
}

func TestScreenInAFileIsPlain(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "transcript"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	perform(newScreen(file, func(string) string { return "" }))
	content, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	want := "\n── 1 of 2: install " + strings.Repeat("─", 81) + `
because

$ kubectl get cer |
    head
  NAME  AGE
  x   1s
✓ 1 of 2
· so it is
✗ not so
    expected  1
`
	if diff := cmp.Diff(want, string(content)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestScreenOnATerminal(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, tty: true, colour: true}
	perform(s)
	if got := out.String(); !strings.Contains(got, green+"✓"+plain) {
		t.Errorf("there are no colours: %q", got)
	}
	if got := out.String(); !strings.Contains(got, "waiting for deploy"+plain+"\r\x1b[K") {
		t.Errorf("a passing line is not wiped out: %q", got)
	}
}

func TestScreenKeepsToItsColumns(t *testing.T) {
	long := strings.Repeat("word ", 60) + strings.Repeat("x", 150)
	cases := map[string]struct {
		print func(*screen)
		want  int
	}{
		"Why":     {func(s *screen) { s.why(long) }, columns},
		"Output":  {func(s *screen) { s.output(long) }, outputColumns},
		"OK":      {func(s *screen) { s.ok("%s", long) }, columns},
		"Detail":  {func(s *screen) { s.detail(long) }, columns},
		"Item":    {func(s *screen) { s.item(long, "       ") }, columns},
		"Command": {func(s *screen) { s.command("kubectl " + strings.Repeat("word ", 60)) }, columns},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			tc.print(&screen{out: &out})
			for line := range strings.Lines(out.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > tc.want {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

func TestClaim(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out}
	if s.claim(true, "it holds", "", ""); out.String() != "✓ it holds\n" {
		t.Errorf("printed %q", out.String())
	}
	play := func(context.Context, *demo) { s.claim(false, "all exist", "all", "none") }
	if err := (&demo{}).play(t.Context(), act{play: play}); err == nil || err.Error() != "all exist: expected all, found none" {
		t.Errorf("the failure is %v", err)
	}
}

func TestStartedFor(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   bool
	}{
		"ours":        {"a program of ours with a path in the folder", []string{"/cache/etcd", "--data-dir=/tmp/demo/cluster/etcd"}, true},
		"by its path": {"the link in the folder", []string{"/tmp/demo/bin/penstock", "serve"}, true},
		"reader":      {"somebody looks at a log", []string{"tail", "-f", "/tmp/demo/penstock.log"}, false},
		"another":     {"a folder whose name begins the same", []string{"/cache/etcd", "--data-dir=/tmp/demo2/etcd"}, false},
		"none":        {"", nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := startedFor("/tmp/demo", tc.args); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
