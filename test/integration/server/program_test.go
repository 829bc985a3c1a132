package server_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// program builds penstock once for all tests.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "penstock-program-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "penstock")
	build := exec.Command("go", "build", "-o", path, "github.com/penstock-project/penstock/cmd/penstock")
	if out, err := build.CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if built {
		if path, err := program(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
	}
	os.Exit(code)
}

var built bool

func buildProgram(t *testing.T) string {
	t.Helper()
	built = true
	path, err := program()
	if err != nil {
		t.Fatalf("building penstock: %v", err)
	}
	return path
}

// launched is a running program and its log.
type launched struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	log   bytes.Buffer
	lines chan string
}

func launch(t *testing.T, path string, host user, dir string, more ...string) *launched {
	t.Helper()
	args := append([]string{"serve", "--kubeconfig", host.Kubeconfig(), "--data-dir", dir,
		"--bind-address", "127.0.0.1", "--secure-port", "0", "--register"}, more...)
	l := &launched{cmd: exec.Command(path, args...), lines: make(chan string, 1000)}
	stderr, err := l.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(l.lines)
		for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
			l.mu.Lock()
			fmt.Fprintln(&l.log, scanner.Text())
			l.mu.Unlock()
			select {
			case l.lines <- scanner.Text():
			default:
			}
		}
	}()
	t.Cleanup(func() {
		_ = l.cmd.Process.Kill()
		_ = l.cmd.Wait()
	})
	return l
}

func (l *launched) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.String()
}

// await returns when the log has a line with the text.
func (l *launched) await(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		select {
		case line, ok := <-l.lines:
			if !ok {
				t.Fatalf("the program ended:\n%s", l.text())
			}
			if strings.Contains(line, text) {
				return
			}
		case <-ctx.Done():
			t.Fatalf("the log does not say %q:\n%s", text, l.text())
		}
	}
}
