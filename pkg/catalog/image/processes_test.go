package image

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Environment variables of the other processes of TestProcesses, which run this test binary.
const (
	otherRoot  = "PENSTOCK_TEST_IMAGE_ROOT"
	otherRef   = "PENSTOCK_TEST_IMAGE_REF"
	otherCerts = "PENSTOCK_TEST_IMAGE_CERTS"
	otherCAs   = "PENSTOCK_TEST_IMAGE_CAS"
)

// TestOtherProcess runs in the other process: it fetches an image, reports that, and holds the
// image until its standard input ends.
func TestOtherProcess(t *testing.T) {
	root := os.Getenv(otherRoot)
	if root == "" {
		t.Skip("it is a process of TestProcesses")
	}
	options := DefaultOptions()
	options.Registries.Certs, options.Registries.CAs = os.Getenv(otherCerts), os.Getenv(otherCAs)
	options.Backoff.Steps = 1
	held := fetched(t.Context(), t, opened(t, root, options), os.Getenv(otherRef))
	fmt.Println("fetched", held.Digest)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type otherProcess struct {
	*exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

// another starts another process with additional environment variables.
func another(t *testing.T, root, ref string, options Options, env ...string) *otherProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOtherProcess$", "-test.timeout=1m")
	cmd.Env = append(os.Environ(), otherRoot+"="+root, otherRef+"="+ref, otherCerts+"="+options.Registries.Certs, otherCAs+"="+options.Registries.CAs)
	cmd.Env = append(cmd.Env, env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &otherProcess{Cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p
}

// fetchedDigest waits until the process has the image.
func (p *otherProcess) fetchedDigest(t *testing.T) string {
	t.Helper()
	var said strings.Builder
	for {
		line, err := p.out.ReadString('\n')
		said.WriteString(line)
		if digest, found := strings.CutPrefix(line, "fetched "); found {
			return strings.TrimSpace(digest)
		}
		if err != nil {
			t.Fatalf("the other process did not fetch: %v: %s", err, said.String())
		}
	}
}

// stalled makes a registry stop at the layer, after the configuration, until release is called.
func (s *served) stalled() (began chan struct{}, release func()) {
	began, released := make(chan struct{}, 8), make(chan struct{})
	var asked atomic.Int64
	s.answer(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") && asked.Add(1) > 1 {
			began <- struct{}{}
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		return false
	})
	return began, sync.OnceFunc(func() { close(released) })
}

// TestProcesses: several processes share one folder.
func TestProcesses(t *testing.T) {
	s := serve(t)
	options := s.options(new(atomic.Int64))
	content := [][]byte{layer(t, entry{name: "a", content: "1"})}
	ref := s.host + "/ns/thing:v1"

	t.Run("one download", func(t *testing.T) {
		root := t.TempDir()
		pinned := s.push("v1", made{layers: content})
		s.requests.Store(0)
		var others []*otherProcess
		for range 4 {
			others = append(others, another(t, root, ref, options))
		}
		for _, other := range others {
			if got := other.fetchedDigest(t); got != pinned.String() {
				t.Errorf("fetched %s; %s is at the tag", got, pinned)
			}
		}
		if got := s.requests.Load(); got != 2 {
			t.Errorf("%d blobs were downloaded by 4 processes; its configuration and its layer are 2", got)
		}
		// The other processes hold the image, so this process must not remove it.
		store := opened(t, root, options)
		if err := store.Collect(nil); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(store.folder(pinned.String())); err != nil {
			t.Errorf("what another process reads was collected: %v", err)
		}
		for _, other := range others {
			_ = other.stdin.Close()
			_ = other.Wait()
		}
		if err := store.Collect(nil); err != nil {
			t.Fatal(err)
		}
		nothingLeft(t, root)
	})

	t.Run("a crash in the middle", func(t *testing.T) {
		root := t.TempDir()
		s.push("v1", made{layers: content})
		began, release := s.stalled()
		defer release()
		other := another(t, root, ref, options)
		<-began
		if err := other.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = other.Wait()
		release()
		store := opened(t, root, options)
		if got := files(t, fetched(t.Context(), t, store, ref).FS); got["a"] != "1" {
			t.Errorf("found %v", got)
		}
		if half, err := filepath.Glob(filepath.Join(root, pullPrefix+"*")); err != nil || len(half) > 0 {
			t.Errorf("what it left half-pulled is still there: %v, %v", half, err)
		}
	})

	t.Run("a process that is stopped", func(t *testing.T) {
		root := t.TempDir()
		s.push("v1", made{layers: content})
		began, release := s.stalled()
		defer release()
		other := another(t, root, ref, options)
		<-began
		if err := other.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		waiting := options
		waiting.LockWait = 3 * poll
		// Opening the folder removes no running pull.
		store := opened(t, root, waiting)
		_, err := store.Fetch(t.Context(), Request{Reference: ref})
		if want := fmt.Sprintf("process %d on ", other.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("found %v; %q is expected", err, want)
		}
		if err := other.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		release()
		other.fetchedDigest(t)
	})
}

// TestCollectUnused: recently opened images stay.
func TestCollectUnused(t *testing.T) {
	s := serve(t)
	store := opened(t, t.TempDir(), s.options(new(atomic.Int64)))
	pinned := s.push("v1", made{layers: [][]byte{layer(t, entry{name: "a", content: "1"})}})
	held, err := store.Fetch(t.Context(), Request{Reference: s.host + "/ns/thing:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.CollectUnused(time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(store.folder(pinned.String())); err != nil {
		t.Errorf("what was opened lately was collected: %v", err)
	}
	if err := store.CollectUnused(time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, store.root)
}
