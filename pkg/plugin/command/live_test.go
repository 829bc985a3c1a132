package command

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/plugintest"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// terminal is a pty of 80 columns and few lines, and its visible content.
type terminal struct {
	master, tty *os.File
	lines       chan string
	shown       []string
}

func openTerminal(t *testing.T, rows uint16) *terminal {
	t.Helper()
	master, tty, err := pty.Open()
	if err != nil {
		t.Skipf("there are no ptys here: %v", err)
	}
	t.Cleanup(func() { master.Close(); tty.Close() })
	if err := pty.Setsize(tty, &pty.Winsize{Rows: rows, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	v := &terminal{master: master, tty: tty, lines: make(chan string)}
	go func() {
		defer close(v.lines)
		for reader := bufio.NewReader(master); ; {
			line, err := reader.ReadString('\n')
			if line != "" {
				v.lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	return v
}

// up matches an escape that moves the cursor some lines up and erases the lines below.
var up = regexp.MustCompile(`^\x1b\[(\d+)A\x1b\[J`)

var styles = regexp.MustCompile(`\x1b\[\d*m`)

func (v *terminal) until(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case line, open := <-v.lines:
			if !open {
				t.Fatalf("the end, and no %q in:\n%s", text, strings.Join(v.shown, "\n"))
			}
			if moved := up.FindStringSubmatch(line); moved != nil {
				n, err := strconv.Atoi(moved[1])
				if err != nil || n > len(v.shown) {
					t.Fatalf("%d lines up of %d: %v", n, len(v.shown), err)
				}
				v.shown = v.shown[:len(v.shown)-n]
				line = line[len(moved[0]):]
			}
			line = strings.TrimRight(styles.ReplaceAllString(line, ""), "\r\n")
			if strings.Contains(line, "\x1b") || screen.Width(line) >= 80 {
				t.Errorf("a line that spoils the picture: %q", line)
			}
			v.shown = append(v.shown, line)
			if strings.Contains(line, text) {
				return
			}
		case <-timeout:
			t.Fatalf("no %q in:\n%s", text, strings.Join(v.shown, "\n"))
		}
	}
}

func (v *terminal) start(ctx context.Context, server *plugintest.Server, args ...string) <-chan int {
	ended := make(chan int, 1)
	kubeconfig := server.Kubeconfig()
	go func() {
		ended <- Main(ctx, session.Process{
			Name: "kubectl-penstock", Args: append(args, "--kubeconfig", kubeconfig), Stdin: v.tty, Stdout: v.tty, Stderr: v.tty,
			Getenv: func(string) string { return "" }, Terminal: screen.RealTerminal,
			Clock: clocktesting.NewFakeClock(recordedAt()), Version: "v0.0.0-test",
		})
		fmt.Fprintln(v.tty, "$")
	}()
	return ended
}

// TestLiveView: on a terminal the picture is replaced and fits. It ends with the rollout, and the
// last picture stays.
func TestLiveView(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	v := openTerminal(t, 10)
	ended := v.start(t.Context(), server, "status", "lighthouse", "-w")
	v.until(t, "more lines")
	if len(v.shown) > 9 {
		t.Errorf("%d lines on a terminal of 10:\n%s", len(v.shown), strings.Join(v.shown, "\n"))
	}
	shown := strings.Join(v.shown, "\n")
	for _, must := range []string{"◎ lighthouse-3 v1.2.0-stuck: Active, 13 of 15 objects available, watched for 0s", "◎ deploy", "Deployment lighthouse-system/lighthouse-controller: waiting: 1 of 2"} {
		if !strings.Contains(shown, must) {
			t.Errorf("%q is not in:\n%s", must, shown)
		}
	}
	revision := server.Revision("lighthouse-3")
	for i := range revision.Status.Phases {
		phase := &revision.Status.Phases[i]
		phase.State, phase.Available, phase.Failing = v1alpha1.PhaseStateAvailable, phase.Objects, nil
	}
	revision.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}, {Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "RolledOut"},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: "RolledOut"}, {Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "RolledOut"}}
	server.Events <- revision
	v.until(t, "$")
	if code := <-ended; code != 0 {
		t.Errorf("exit %d", code)
	}
	shown = strings.Join(v.shown, "\n")
	if !strings.HasPrefix(shown, "✓ lighthouse-3 v1.2.0-stuck: Active, 15 of 15 objects available") || strings.Contains(shown, "waiting") {
		t.Errorf("the last picture is:\n%s", shown)
	}
}

// TestInterrupted: an interrupted command prints that, and exits with the shell's usual code.
func TestInterrupted(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	v := openTerminal(t, 40)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := v.start(ctx, server, "status", "lighthouse", "-w")
	v.until(t, "lighthouse-3 v1.2.0-stuck")
	interrupt()
	v.until(t, "interrupted")
	if code := <-ended; code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
}

// TestPiped: without a terminal, each transition prints a line, without escapes.
func TestPiped(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	reader, writer := io.Pipe()
	lines := bufio.NewScanner(reader)
	go func() {
		Main(t.Context(), session.Process{
			Name: "kubectl-penstock", Args: []string{"status", "lighthouse", "-w", "--kubeconfig", server.Kubeconfig()}, Stdin: strings.NewReader(""), Stdout: writer, Stderr: writer,
			Getenv: func(string) string { return "" }, Terminal: func(any) (screen.Size, bool) { return screen.Size{}, false },
			Clock: clocktesting.NewFakeClock(recordedAt()), Version: "v0.0.0-test",
		})
		writer.Close()
	}()
	var all []string
	revision := server.Revision("lighthouse-3")
	for lines.Scan() {
		all = append(all, lines.Text())
		if strings.Contains(lines.Text(), "waiting") {
			revision.Status.Conditions = append(revision.Status.Conditions[:0], metav1.Condition{Type: v1alpha1.ConditionFailing, Status: metav1.ConditionTrue, Reason: "Collision", Message: "it is \x1b[31mhis"})
			server.Events <- revision
		}
	}
	text := strings.Join(all, "\n")
	if strings.Contains(text, "\x1b") || strings.Count(text, "waiting") != 1 || !strings.Contains(text, "Error: lighthouse-3 is not rolled out: Collision: it is [31mhis") {
		t.Errorf("%s", text)
	}
}

// TestChangesInLines: machine formats print a line for each changed object, including plans.
// Unchanged objects are not repeated.
func TestChangesInLines(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	reader, writer := io.Pipe()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Main(ctx, session.Process{
			Name: "kubectl-penstock", Args: []string{"status", "-w", "-o", "json", "--kubeconfig", server.Kubeconfig()}, Stdin: strings.NewReader(""), Stdout: writer, Stderr: io.Discard,
			Getenv: func(string) string { return "" }, Terminal: func(any) (screen.Size, bool) { return screen.Size{}, false },
			Clock: clocktesting.NewFakeClock(recordedAt()), Version: "v0.0.0-test",
		})
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	lines.Buffer(nil, 1<<20)
	next := func() string {
		if !lines.Scan() {
			t.Fatalf("the end: %v", lines.Err())
		}
		var object struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &object); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		return object.Kind + " " + object.Metadata.Name
	}
	const revision, plan = "ClusterExtensionRevision ", "ConfigurationPlan "
	for _, want := range []string{revision + "lighthouse-2", revision + "lighthouse-3", revision + "shop-1", plan + "rebalance"} {
		if got := next(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	changed := server.Revision("lighthouse-3")
	changed.ResourceVersion = "9999"
	server.Events <- changed
	if got := next(); got != revision+"lighthouse-3" {
		t.Error(got)
	}
	interrupt()
	if lines.Scan() {
		t.Errorf("one more: %s", lines.Text())
	}
	if code := <-ended; code != 130 {
		t.Errorf("exit %d, want 130", code)
	}
}

// TestLiveOverview: all extensions and plans are in one picture.
func TestLiveOverview(t *testing.T) {
	server := plugintest.New(t, "testdata/recorded")
	v := openTerminal(t, 40)
	ctx, interrupt := context.WithCancel(t.Context())
	ended := v.start(ctx, server, "status", "-w")
	v.until(t, "! plan rebalance: ReviewRequired")
	interrupt()
	v.until(t, "interrupted")
	<-ended
	if shown := strings.Join(v.shown, "\n"); !strings.Contains(shown, "3 extensions, 1 plan") {
		t.Errorf("%s", shown)
	}
}
