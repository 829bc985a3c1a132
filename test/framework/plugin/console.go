package plugin

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/plugin/command"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

// Console is an opened console.
type Console struct {
	// Address is the printed address: Origin followed by Key.
	Address, Origin, Key string
	// Stop stops the console like an interruption.
	Stop func()
}

// OpenConsole runs a command such as `kubectl penstock console` until the test ends, without a
// browser and on a free port.
func OpenConsole(t testing.TB, kubeconfig, line string) *Console {
	t.Helper()
	words := strings.Fields(strings.Replace(line, "--port 8090", "--port 0", 1))
	ctx, interrupt := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	var complaints strings.Builder
	go func() {
		ended <- command.Main(ctx, session.Process{
			Name: "kubectl-penstock", Args: append(words[2:], "--no-browser", "--kubeconfig", kubeconfig),
			Stdin: strings.NewReader(""), Stdout: writer, Stderr: &complaints,
			Getenv: func(string) string { return "" }, Terminal: func(any) (screen.Size, bool) { return screen.Size{}, false },
			Clock: clock.RealClock{}, Version: "v0.1.0",
		})
		_ = writer.Close()
	}()
	printed, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		interrupt()
		<-ended
		t.Fatalf("plugin: the console did not begin: %v: %s", err, complaints.String())
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	stop := sync.OnceFunc(func() {
		interrupt()
		if code := <-ended; code != 130 {
			t.Errorf("plugin: the console ended with %d: %s", code, complaints.String())
		}
	})
	t.Cleanup(stop)
	address := strings.TrimSpace(printed)
	origin, key, found := strings.Cut(address, "/#key=")
	if !found {
		t.Fatalf("plugin: no address with a key: %q", printed)
	}
	key, _, _ = strings.Cut(key, "&at=")
	return &Console{Address: address, Origin: origin, Key: key, Stop: stop}
}
