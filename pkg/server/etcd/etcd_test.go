package etcd

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2/ktesting"
)

func TestSocketPath(t *testing.T) {
	cases := map[string]struct {
		reason string
		dir    string
		err    string
	}{
		"Short": {
			reason: "an ordinary directory",
			dir:    "/var/lib/penstock",
		},
		"Longest": {
			reason: "the socket's path is exactly what the kernel takes",
			dir:    "/" + strings.Repeat("a", maxSocketPath-len("/run/etcd.sock")-1),
		},
		"TooLong": {
			reason: "the message says by how much, and what for",
			dir:    "/" + strings.Repeat("a", maxSocketPath-len("/run/etcd.sock")+2),
			err:    "is 3 bytes too long: Penstock creates a unix socket below it",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := socketPath(tc.dir)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)) {
				t.Errorf("%s: got error %v, want %q", tc.reason, err, tc.err)
			}
		})
	}
}

// TestRestart: the longest path that socketPath allows works, and a restart keeps written data.
func TestRestart(t *testing.T) {
	log, ctx := ktesting.NewTestContext(t)
	base := t.TempDir()
	fill := maxSocketPath - len(base) - len("//run/etcd.sock")
	if fill < 1 {
		t.Skipf("the temporary directory %s leaves no room for a socket", base)
	}
	dir := filepath.Join(base, strings.Repeat("d", fill))
	config := Config{DataDir: dir, QuotaBytes: 64 << 20, Log: log}

	for _, want := range []int64{0, 1} {
		s, err := Start(ctx, config)
		if err != nil {
			t.Fatalf("start: %v", err)
		}
		client := newClient(t, s)
		got, err := client.Get(ctx, "k")
		if err != nil {
			t.Fatalf("get: %v", err)
		}
		if got.Count != want {
			t.Errorf("found %d keys, want %d", got.Count, want)
		}
		if _, err := client.Put(ctx, "k", "v"); err != nil {
			t.Fatalf("put: %v", err)
		}
		_ = client.Close()
		s.Close()
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	log, ctx := ktesting.NewTestContext(t)
	config := Config{DataDir: t.TempDir(), QuotaBytes: 64 << 20, Log: log}
	first, err := Start(ctx, config)
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer first.Close()

	begin := time.Now()
	second, err := Start(ctx, config)
	if err == nil {
		second.Close()
		t.Fatal("a second etcd started on the same directory")
	}
	if !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("the error does not say what is wrong: %v", err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("the refusal took %s", took)
	}
	// The refused server must leave the socket of the first server intact.
	if _, err := newClient(t, first).Get(ctx, "k"); err != nil {
		t.Errorf("the first etcd no longer answers: %v", err)
	}
}

// TestNothingElseListens: only the socket in the private directory accepts connections. An abstract
// socket or a port would be open to every process of the machine.
func TestNothingElseListens(t *testing.T) {
	before := listening(t, "self")
	log, ctx := ktesting.NewTestContext(t)
	dir := t.TempDir()
	s, err := Start(ctx, Config{DataDir: dir, QuotaBytes: 64 << 20, Log: log})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	defer s.Close()

	want := filepath.Join(dir, "run", "etcd.sock")
	found := false
	for socket := range listening(t, "self") {
		if before[socket] {
			continue
		}
		if strings.HasSuffix(socket, " "+want) {
			found = true
			continue
		}
		t.Errorf("etcd listens on %q", socket)
	}
	if !found {
		t.Errorf("etcd does not listen on %s", want)
	}
	info, err := os.Stat(filepath.Dir(want))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		t.Errorf("the socket's directory has mode %o, want 700", mode)
	}
}

func listening(t *testing.T, pid string) map[string]bool {
	t.Helper()
	ours := map[string]bool{}
	fds, err := os.ReadDir("/proc/" + pid + "/fd")
	if err != nil {
		t.Skipf("this test reads /proc: %v", err)
	}
	for _, fd := range fds {
		link, _ := os.Readlink("/proc/" + pid + "/fd/" + fd.Name())
		if inode, ok := strings.CutPrefix(link, "socket:["); ok {
			ours[strings.TrimSuffix(inode, "]")] = true
		}
	}
	found := map[string]bool{}
	scan := func(path string, inode int, listens func([]string) bool, name func([]string) string) {
		file, err := os.Open(path)
		if err != nil {
			return
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			f := strings.Fields(lines.Text())
			if len(f) > inode && listens(f) && ours[f[inode]] {
				found[name(f)] = true
			}
		}
	}
	for _, path := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		scan(path, 9, func(f []string) bool { return f[3] == "0A" }, func(f []string) string { return "tcp " + f[1] })
	}
	scan("/proc/self/net/unix", 6, func(f []string) bool { return f[3] == "00010000" },
		func(f []string) string { return fmt.Sprintf("unix %s", strings.Join(f[7:], " ")) })
	return found
}

func newClient(t *testing.T, s *Server) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Endpoint()}, DialTimeout: 5 * time.Second})
	if err != nil {
		t.Fatalf("client: %v", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := client.Get(ctx, "health"); err != nil {
		t.Fatalf("health: %v", err)
	}
	return client
}

// TestListeningSeesAbstractSockets: the scan of TestNothingElseListens finds abstract sockets.
func TestListeningSeesAbstractSockets(t *testing.T) {
	l, err := net.Listen("unix", "@penstock-test")
	if err != nil {
		t.Skipf("no abstract sockets here: %v", err)
	}
	defer l.Close()
	for socket := range listening(t, "self") {
		if strings.Contains(socket, "@penstock-test") {
			return
		}
	}
	t.Error("an abstract socket is not seen")
}
