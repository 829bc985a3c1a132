package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/klog/v2/ktesting"
)

// childArgument makes the test program the child of a test. It has the form of a flag, so that a
// program that does not know it exits with an error.
const childArgument = "--embedded-etcd"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		os.Exit(ServeChild(os.Stdin, os.Stdout, func(context.Context) {}))
	}
	if len(os.Args) == 3 && os.Args[1] == parentArgument {
		os.Exit(runParent(os.Args[2]))
	}
	os.Exit(m.Run())
}

const patience = time.Minute

// shortDir returns a directory whose path is short enough for a unix socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func startProcess(t *testing.T, dir string) *Process {
	t.Helper()
	log, ctx := ktesting.NewTestContext(t)
	p, err := StartProcess(ctx, Config{DataDir: dir, QuotaBytes: 1 << 30, Log: log}, "/proc/self/exe", childArgument)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func puts(t *testing.T, p *Process, key, value string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	_, err = client.Put(ctx, key, value)
	return err
}

func has(t *testing.T, p *Process, key string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	got, err := client.Get(ctx, key)
	if err == nil && got.Count != 1 {
		err = errors.New("it is gone")
	}
	return err
}

func (p *Process) kill(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	pid := p.pid
	p.mu.Unlock()
	// The damage to its files may have ended the process already.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Fatal(err)
	}
}

func moves(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// damage changes one byte in every 64 of the used part of files. mend restores the files.
func damage(t *testing.T, pattern string) (mend func()) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	right := map[string][]byte{}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		right[path] = content
		damaged := bytes.Clone(content)
		for i := 0; i < len(bytes.TrimRight(content, "\x00")); i += 64 {
			damaged[i] ^= 0xff
		}
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for path, content := range right {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestConditions: no failure of the data directory ends this process. Down describes the failure
// until it is over, and no data is lost.
func TestConditions(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		// atStart marks a condition that a running etcd does not notice.
		atStart bool
		// begin causes the condition, and returns a function that ends it.
		begin func(t *testing.T, dir string) (over func())
		says  string
	}{
		"Removed": {
			reason: "another store must not come to its place: all that it has would be taken for deleted",
			begin: func(t *testing.T, dir string) func() {
				moves(t, filepath.Join(dir, "etcd"), filepath.Join(dir, "away"))
				return func() { moves(t, filepath.Join(dir, "away"), filepath.Join(dir, "etcd")) }
			},
			says: "the store that was there is gone",
		},
		"Replaced": {
			reason: "nor one that somebody made",
			begin: func(t *testing.T, dir string) func() {
				moves(t, filepath.Join(dir, "etcd"), filepath.Join(dir, "away"))
				if err := os.MkdirAll(filepath.Join(dir, "etcd", "member"), 0o700); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := os.RemoveAll(filepath.Join(dir, "etcd")); err != nil {
						t.Fatal(err)
					}
					moves(t, filepath.Join(dir, "away"), filepath.Join(dir, "etcd"))
				}
			},
			says: "is not the same directory as before",
		},
		"Truncated": {
			reason: "reading what is mapped and is not there is a signal of the kernel",
			begin: func(t *testing.T, dir string) func() {
				path := filepath.Join(dir, "etcd", "member", "snap", "db")
				content, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(path, 4096); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := os.WriteFile(path, content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			},
		},
		"DamagedLog": {
			reason: "a disk that loses what was written", atStart: true,
			begin: func(t *testing.T, dir string) func() {
				return damage(t, filepath.Join(dir, "etcd", "member", "wal", "*.wal"))
			},
		},
		"DamagedDatabase": {
			reason: "the same", atStart: true,
			begin: func(t *testing.T, dir string) func() {
				return damage(t, filepath.Join(dir, "etcd", "member", "snap", "db"))
			},
		},
		"NoDirectory": {
			reason: "a file is where the data directory was", atStart: true,
			begin: func(t *testing.T, dir string) func() {
				moves(t, dir, dir+".away")
				if err := os.WriteFile(dir, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				return func() {
					if err := os.Remove(dir); err != nil {
						t.Fatal(err)
					}
					moves(t, dir+".away", dir)
				}
			},
			says: "not a directory",
		},
		"ReadOnly": {
			reason: "as a file system that found errors in itself", atStart: true,
			begin: func(t *testing.T, dir string) func() {
				if err := mountReadOnly(dir); err != nil {
					t.Skipf("nothing can be mounted here, so nothing is seen of a file system that is read-only: %v", err)
				}
				return func() {
					if err := unmount(dir); err != nil {
						t.Fatal(err)
					}
				}
			},
			says: "read-only file system",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(shortDir(t), "data")
			p := startProcess(t, dir)
			if err := puts(t, p, "kept", "value"); err != nil {
				t.Fatal(err)
			}
			if tc.atStart {
				p.Close()
			}
			over := tc.begin(t, dir)
			if tc.atStart {
				p = startProcess(t, dir)
			} else {
				p.kill(t)
			}
			eventually(t, "the reason", func() error {
				_, reason := p.Down()
				if reason == nil || !strings.Contains(reason.Error(), tc.says) || strings.Contains(reason.Error(), "it is starting") || strings.Contains(reason.Error(), "signal: killed") {
					return fmt.Errorf("it is %w, want %q", reason, tc.says)
				}
				return nil
			})
			over()
			eventually(t, tc.reason, func() error { return has(t, p, "kept") })
		})
	}
}

// TestKilled: a killed etcd is restarted.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := startProcess(t, shortDir(t))
	if err := puts(t, p, "kept", "value"); err != nil {
		t.Fatal(err)
	}
	p.kill(t)
	eventually(t, "its end", func() error {
		if _, reason := p.Down(); reason == nil {
			return errors.New("it runs")
		}
		return nil
	})
	eventually(t, "another one", func() error { return has(t, p, "kept") })
	if families, err := p.Gather(); err != nil || len(families) < 50 || !strings.HasPrefix(families[0].GetName(), "etcd_") {
		t.Errorf("it measures %d things: %v", len(families), err)
	}
}

// TestChildEndsWithParent: an etcd releases its files at once when its parent ends.
func TestChildEndsWithParent(t *testing.T) {
	dir := shortDir(t)
	in, parent := io.Pipe()
	_ = in.CloseWithError(io.ErrUnexpectedEOF)
	_ = parent.Close()
	if code := ServeChild(in, io.Discard, func(context.Context) { t.Error("it runs") }); code == 0 {
		t.Error("it ends as if all were well")
	}
	if _, err := os.Stat(filepath.Join(dir, "etcd")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has made files: %v", err)
	}
}

// TestFull: on a full volume etcd ends and reports the reason, also at a start. It continues when
// there is room.
func TestFull(t *testing.T) {
	t.Parallel()
	volume := shortDir(t)
	if err := mountSmall(volume, "96m"); err != nil {
		t.Skipf("a small volume cannot be mounted here, so nothing is seen of one that is full: %v", err)
	}
	t.Cleanup(func() { _ = unmount(volume) })
	dir := filepath.Join(volume, "data")
	p := startProcess(t, dir)
	if err := puts(t, p, "kept", "value"); err != nil {
		t.Fatal(err)
	}
	filler, fill := filepath.Join(volume, "filler"), func() {
		if err := os.WriteFile(filepath.Join(volume, "filler"), make([]byte, 96<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the volume is not full: %v", err)
		}
	}
	fill()
	value := strings.Repeat("value", 200_000)
	for i := range 100 {
		if puts(t, p, fmt.Sprint("more", i), value) != nil {
			break
		}
	}
	full := func() {
		t.Helper()
		eventually(t, "the reason", func() error {
			_, reason := p.Down()
			if reason == nil || !strings.Contains(reason.Error(), "no space left on device") {
				return fmt.Errorf("it is %w", reason)
			}
			return nil
		})
	}
	full()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	eventually(t, "room", func() error { return puts(t, p, "kept", "again") })
}

func TestReason(t *testing.T) {
	log, _ := ktesting.NewTestContext(t)
	p := &Process{config: Config{Log: log}}
	fatal := &entry{Level: zap.FatalLevel, Message: "failed to commit tx", Fields: map[string]any{"error": "no space left on device"}}
	warned := &entry{Level: zap.ErrorLevel, Message: "failed to preallocate"}
	for name, tc := range map[string]struct {
		reason  string
		exit    error
		last    *entry
		printed string
		want    string
	}{
		"Fatal":    {"what it ended with", errors.New("exit status 1"), fatal, "", "failed to commit tx: no space left on device"},
		"Panicked": {"a panic says it on its first line", errors.New("exit status 2"), warned, "panic: page 3 already freed\n\ngoroutine 1", "panic: page 3 already freed"},
		"Failed":   {"its last error is better than nothing", errors.New("exit status 1"), warned, "", "failed to preallocate"},
		"Killed":   {"somebody else's doing", errors.New("signal: killed"), nil, "", "signal: killed"},
		"Ended":    {"it should not", nil, nil, "", "it ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := p.reason(tc.exit, tc.last, tc.printed); got.Error() != tc.want {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
