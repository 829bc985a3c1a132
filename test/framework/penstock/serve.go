package penstock

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// Served is the log line which says that the host serves our API.
const Served = "The host cluster serves our API"

// Host has a kubeconfig file: it is a *cluster.Cluster or one of its users. With a *cluster.Cluster
// the program runs as Penstock's own user, with exactly the rights of artifacts/deploy.
type Host interface{ Kubeconfig() string }

// Server is a running `penstock serve`.
type Server struct {
	cmd *exec.Cmd
	// ended is closed when the process has ended. failure is its error.
	ended   chan struct{}
	failure error

	mu  sync.Mutex
	log strings.Builder
	// grown is closed and replaced for each new line of the log.
	grown chan struct{}
}

// Serve runs `penstock serve --register` on a free port until the test ends, and returns when the
// host serves our API. A process that exits by itself fails the test.
func (p *Program) Serve(t testing.TB, host Host, dataDir string, flags ...string) *Server {
	t.Helper()
	s := p.Launch(t, host, dataDir, flags...)
	s.Await(t, Served)
	s.reached(t, host)
	return s
}

// reached waits until requests through the host reach our API. The APIService's status can be
// available slightly before that.
func (s *Server) reached(t testing.TB, host Host) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", host.Kubeconfig())
	if err != nil {
		t.Fatalf("penstock: reading the kubeconfig of the host: %v", err)
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatalf("penstock: making a client for the host: %v", err)
	}
	for _, version := range []schema.GroupVersion{olmv1alpha1.SchemeGroupVersion, hcov1alpha1.SchemeGroupVersion} {
		var answer error
		err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, poll.Patience, true, func(context.Context) (bool, error) {
			_, answer = client.ServerResourcesForGroupVersion(version.String())
			return !apierrors.IsServiceUnavailable(answer), nil
		})
		if err != nil {
			t.Fatalf("penstock: %s is not reached through the host: %v", version, answer)
		}
	}
}

// Launch is like Serve, but returns at once.
func (p *Program) Launch(t testing.TB, host Host, dataDir string, flags ...string) *Server {
	t.Helper()
	if cluster, ok := host.(administered); ok {
		host = Install(t, cluster)
	}
	args := append([]string{"serve", "--kubeconfig", host.Kubeconfig(), "--data-dir", dataDir,
		"--bind-address", "127.0.0.1", "--secure-port", "0", "--catalog-addr", "127.0.0.1:0", "--register"}, flags...)
	command := exec.Command(p.path, args...)
	command.SysProcAttr = dieWithParent()
	return Start(t, command)
}

// Start starts a given command line, such as the command of a container.
func Start(t testing.TB, command *exec.Cmd) *Server {
	t.Helper()
	s := &Server{cmd: command, ended: make(chan struct{}), grown: make(chan struct{})}
	output, input, err := os.Pipe()
	if err != nil {
		t.Fatalf("penstock: %v", err)
	}
	s.cmd.Stdout, s.cmd.Stderr = input, input
	started := make(chan error)
	go s.run(started)
	err = <-started
	_ = input.Close() // the process has its own copy
	if err != nil {
		_ = output.Close()
		t.Fatalf("penstock: starting penstock serve: %v", err)
	}
	go s.read(output)
	t.Cleanup(func() { s.Kill(t) })
	return s
}

// run starts the process and waits for it on one operating system thread. On Linux a child with a
// parent-death signal dies with the thread that forked it.
func (s *Server) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := s.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	s.failure = s.cmd.Wait()
	close(s.ended)
}

func (s *Server) read(output io.ReadCloser) {
	defer output.Close()
	lines := bufio.NewReader(output)
	for {
		line, err := lines.ReadString('\n')
		s.mu.Lock()
		s.log.WriteString(line)
		close(s.grown)
		s.grown = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return // the process has ended
		}
	}
}

// Log returns the output of the process so far.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Complaints returns the last 100 log lines above the level of information, including panics, to
// print for a failed test.
func (s *Server) Complaints() string {
	lines := slices.Collect(strings.Lines(s.Log()))
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "I") })
	return strings.Join(lines[max(0, len(lines)-100):], "")
}

// Await waits until the log contains the text.
func (s *Server) Await(t testing.TB, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	for {
		s.mu.Lock()
		found, grown := strings.Contains(s.log.String(), text), s.grown
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-grown:
		case <-s.ended:
			t.Fatalf("penstock: the process ended (%v) before its log said %q:\n%s", s.failure, text, s.Log())
		case <-ctx.Done():
			t.Fatalf("penstock: the log does not say %q:\n%s", text, s.Log())
		}
	}
}

// Port returns the port on which the process listens, from its log. It returns 0 before the log has
// the port.
func (s *Server) Port() int {
	found := regexp.MustCompile(`"Ready" port=(\d+)`).FindStringSubmatch(s.Log())
	if found == nil {
		return 0
	}
	// The expression matches only digits.
	port, _ := strconv.Atoi(found[1])
	return port
}

// Pid returns the process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Ended returns a channel that is closed when the process has ended for any reason.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Kill kills the process, like the loss of its machine, and returns when it has ended.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	// The process may have ended before.
	_ = s.cmd.Process.Kill()
	s.gone(t)
}

// Stop stops the process as an administrator would, and returns the duration. It fails the test if
// the exit is not clean.
func (s *Server) Stop(t testing.TB) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("penstock: stopping: %v", err)
	}
	s.gone(t)
	if s.failure != nil {
		t.Errorf("penstock: the process did not stop cleanly: %v\n%s", s.failure, s.Log())
	}
	return time.Since(begin)
}

func (s *Server) gone(t testing.TB) {
	t.Helper()
	select {
	case <-s.ended:
	case <-time.After(poll.Patience):
		t.Fatal("penstock: the process does not end")
	}
}
