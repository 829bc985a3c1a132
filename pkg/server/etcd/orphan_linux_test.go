package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// parentArgument makes the test program the parent of an etcd, on the directory that follows, until
// it is killed. The parent prints the child's process id.
const parentArgument = "--parent-of-embedded-etcd"

func runParent(dir string) int {
	p, err := StartProcess(context.Background(), Config{DataDir: dir, QuotaBytes: 1 << 30, Log: logr.Discard()}, "/proc/self/exe", childArgument)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if _, reason := p.Down(); reason != nil {
		fmt.Fprintln(os.Stderr, reason)
		return 1
	}
	fmt.Println(p.pid)
	<-p.ended
	return 1
}

type family struct {
	parent *exec.Cmd
	child  int
}

func startFamily(t *testing.T, dir string) family {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", parentArgument, dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	said, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("there is no etcd: %v", err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil {
		t.Fatal(err)
	}
	return family{cmd, child}
}

func (f family) orphan(t *testing.T) {
	t.Helper()
	if err := f.parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = f.parent.Wait() // the error says that it was killed
}

// running reports whether a process runs. A zombie does not count.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// TestOrphan: a killed parent leaves no etcd process, and the next parent finds all written data.
func TestOrphan(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	f := startFamily(t, dir)
	if err := puts(t, &Process{endpoint: endpointOf(dir)}, "kept", "value"); err != nil {
		t.Fatal(err)
	}
	f.orphan(t)
	begin := time.Now()
	p := startProcess(t, dir)
	if err := has(t, p, "kept"); err != nil {
		t.Error(err)
	}
	t.Logf("another one answered after %s", time.Since(begin))
	if running(f.child) {
		t.Error("the etcd of the one that was killed runs")
	}
}

func endpointOf(dir string) string { return "unix://" + filepath.Join(dir, "run", "etcd.sock") }

// TestHungOrphan: an etcd that cannot end because its disk hangs keeps its files locked. The next
// process reports that.
func TestHungOrphan(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	// The kernel ends a stopped process without a parent, so this test holds the lock itself.
	orphan, err := lockFiles(t.Context(), filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, dir)
	eventually(t, "the reason", func() error {
		if _, reason := p.Down(); reason == nil || !strings.Contains(reason.Error(), "whose parent process was killed still has the files open") {
			return fmt.Errorf("it is %w", reason)
		}
		return nil
	})
	if err := orphan.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an etcd", func() error { return puts(t, p, "key", "value") })
}

// TestHung: an etcd that does not answer does not block the end of its parent.
func TestHung(t *testing.T) {
	t.Parallel()
	p := startProcess(t, shortDir(t))
	if err := syscall.Kill(p.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	p.Close()
	if took := time.Since(begin); took > stopTimeout+5*time.Second {
		t.Errorf("it took %s", took)
	}
	if running(p.pid) {
		t.Error("it runs")
	}
}

// TestNobodyElse: only the user of this process can connect to a child. Its only socket is below a
// directory that other users cannot enter.
func TestNobodyElse(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o777); err != nil {
		t.Fatal(err)
	}
	// Set the mode again, because umask has reduced it.
	if err := os.Chmod(filepath.Join(dir, "run"), 0o777); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, dir)
	if _, reason := p.Down(); reason != nil {
		t.Fatal(reason)
	}
	found := listening(t, strconv.Itoa(p.pid))
	if want := "unix " + filepath.Join(dir, "run", "etcd.sock"); len(found) != 1 || !found[want] {
		t.Errorf("it listens on %v, want %s alone", found, want)
	}
	info, err := os.Stat(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("the socket's directory has mode %o, want 700", mode)
	}
}

// TestInUse: a second parent is refused at once, and does not disturb the first.
func TestInUse(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	p := startProcess(t, dir)
	var used *inUseError
	if _, err := StartProcess(t.Context(), Config{DataDir: dir, Log: logr.Discard()}, "/bin/false"); !errors.As(err, &used) {
		t.Errorf("got %v, want that the directory is in use", err)
	}
	if err := puts(t, p, "key", "value"); err != nil {
		t.Error(err)
	}
}

// TestPrinting: the parent ignores output of a child that is not a message.
func TestPrinting(t *testing.T) {
	p := &Process{config: Config{Log: logr.Discard()}, tried: make(chan struct{})}
	last := p.listen(strings.NewReader("a library\n" + `{"entry":{"level":"error","message":"it burns"}}` + "\n"))
	if last == nil || last.Message != "it burns" {
		t.Errorf("got %v", last)
	}
}
