package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// kubectls runs kubectl for everybody who has access to a plane. Where the tools have
// it, kubectl-batch runs one command after the other: a start of kubectl takes 60 ms
// of a processor, a command 10. There are as many as commands run at the same time.
type kubectls struct {
	dir, tools string
	processors int // as of Options

	mu sync.Mutex
	// Those that do nothing: for commands that wait, and for others.
	waiting, others []*batch
	all             []*batch
	closed          bool
}

// commandsEach is the number of commands that one process runs. Each command leaves 1.6 MB in
// kubectl's caches until the process ends; that memory is needed for the cache of files.
const commandsEach = 200

// Output has the output of a run of kubectl and its exit code.
type Output struct {
	Stdout, Stderr string
	ExitCode       int
}

// command is one run of kubectl; kubectl-batch has the same types.
type command struct {
	Args  []string
	Env   []string
	Stdin []byte
	Waits bool
}

type answer struct {
	Stdout, Stderr []byte
	ExitCode       int
}

// run runs a command to its end. A non-zero exit is no error.
func (k *kubectls) run(ctx context.Context, c command) (Output, error) {
	if slices.Contains(c.Args, "can-i") {
		// It ends its process to say no.
		return k.alone(ctx, c)
	}
	c.Waits = waits(c.Args)
	b, err := k.take(c.Waits)
	if errors.Is(err, os.ErrNotExist) {
		return k.alone(ctx, c)
	}
	if err != nil {
		return Output{}, err
	}
	out, err := b.run(ctx, c)
	if err != nil {
		b.end()
		return Output{}, err
	}
	b.commands++
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || b.commands == commandsEach {
		b.end()
		return out, nil
	}
	idle := k.idle(c.Waits)
	*idle = append(*idle, b)
	return out, nil
}

// waits is true for commands that wait. They have processes of their own: what they watch by
// ends a moment after them, and would complain in the output of the next command.
func waits(args []string) bool {
	if slices.Contains(args, "delete") && slices.Contains(args, "--wait=false") {
		return false
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return slices.Contains([]string{"delete", "wait", "rollout"}, arg) || strings.HasPrefix(arg, "--wait")
	})
}

// alone runs a command by kubectl itself.
func (k *kubectls) alone(ctx context.Context, c command) (Output, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(k.tools, "kubectl"), c.Args...)
	cmd.Env = append(environment(k.processors), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.Stdin), &stdout, &stderr
	err := cmd.Run()
	out := Output{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}
	if exit := new(exec.ExitError); errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	return out, err
}

// idle are the processes that do nothing, those for commands that wait or the others.
func (k *kubectls) idle(waits bool) *[]*batch {
	if waits {
		return &k.waiting
	}
	return &k.others
}

// take returns a process that does nothing, of those for commands that wait or of the
// others, or starts one.
func (k *kubectls) take(waits bool) (*batch, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	idle := k.idle(waits)
	if n := len(*idle); n > 0 {
		b := (*idle)[n-1]
		*idle = (*idle)[:n-1]
		return b, nil
	}
	b, err := startBatch(launch{dir: k.dir, name: "kubectl-batch", path: filepath.Join(k.tools, "kubectl-batch"), processors: k.processors})
	if err == nil {
		k.all = append(k.all, b)
	}
	return b, err
}

// close ends all processes. Commands that run fail.
func (k *kubectls) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, b := range k.all {
		b.end()
	}
	k.all, k.waiting, k.others = nil, nil, nil
}

// batch is one process of kubectl-batch.
type batch struct {
	*Process
	requests io.WriteCloser
	answers  *os.File
	commands int
}

func startBatch(l launch) (*batch, error) {
	if _, err := os.Stat(l.path); err != nil {
		return nil, err
	}
	stdin, requests, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for kubectl-batch: %w", err)
	}
	defer stdin.Close()
	answers, stdout, err := os.Pipe()
	if err != nil {
		requests.Close()
		return nil, fmt.Errorf("making a pipe for kubectl-batch: %w", err)
	}
	defer stdout.Close()
	l.stdin, l.stdout = stdin, stdout
	started, err := l.start()
	if err != nil {
		requests.Close()
		answers.Close()
		return nil, err
	}
	return &batch{Process: started, requests: requests, answers: answers}, nil
}

// run has a command run. After an error nothing else can be.
func (b *batch) run(ctx context.Context, c command) (Output, error) {
	// To end the process ends the reading.
	stop := context.AfterFunc(ctx, b.end)
	var a answer
	err := json.NewEncoder(b.requests).Encode(c)
	if err == nil {
		err = json.NewDecoder(b.answers).Decode(&a)
	}
	if !stop() {
		return Output{}, ctx.Err()
	}
	if err != nil {
		return Output{}, fmt.Errorf("%w; the end of the log of kubectl-batch:\n%s", err, tail(b.log, 15))
	}
	return Output{Stdout: string(a.Stdout), Stderr: string(a.Stderr), ExitCode: a.ExitCode}, nil
}

// end ends the process, and with it the command that it runs.
func (b *batch) end() {
	_ = b.Kill() // it may have ended by itself
	b.requests.Close()
	b.answers.Close()
}

// kubectlEnv are the variables of a command of a user.
func (a *Access) kubectlEnv(more []string) []string {
	// A discovery cache of its own: the default one in $HOME is shared by all
	// clusters that ever had this port.
	return append([]string{"KUBECONFIG=" + a.kubeconfig, "KUBECACHEDIR=" + filepath.Join(a.kubectl.dir, "kubectl-cache")}, more...)
}

// Kubectl runs the kubectl of the plane's own release as this user. stdin may
// be nil. A non-zero exit is in Output, not an error; an error means that
// kubectl did not run to its end.
func (a *Access) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (Output, error) {
	return a.KubectlEnv(ctx, nil, stdin, args...)
}

// KubectlEnv is Kubectl with more variables in its environment, as "NAME=value".
func (a *Access) KubectlEnv(ctx context.Context, env []string, stdin io.Reader, args ...string) (Output, error) {
	c := command{Args: args, Env: a.kubectlEnv(env)}
	if stdin != nil {
		var err error
		if c.Stdin, err = io.ReadAll(stdin); err != nil {
			return Output{}, fmt.Errorf("reading the input of kubectl %s: %w", strings.Join(args, " "), err)
		}
	}
	out, err := a.kubectl.run(ctx, c)
	if err != nil {
		return out, fmt.Errorf("running kubectl %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}
