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

// kubectls runs kubectl for all users of a plane. If the tools have kubectl-batch, one process runs
// many commands in sequence: a start of kubectl takes 60 ms of processor time, a command 10 ms.
// There are as many processes as concurrent commands.
type kubectls struct {
	dir, tools string
	processors int // see Options

	mu sync.Mutex
	// waiting are idle processes for commands that wait. others are idle processes for other
	// commands.
	waiting, others []*batch
	all             []*batch
	closed          bool
}

// commandsEach is the number of commands that a process runs. Each command leaves 1.6 MB in
// kubectl's caches until the process ends. The machine needs that memory for its file cache.
const commandsEach = 200

// Output is the output of a kubectl run and its exit code.
type Output struct {
	Stdout, Stderr string
	ExitCode       int
}

// command is a run of kubectl. kubectl-batch declares the same types.
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

// run runs a command to its end. A non-zero exit code is no error.
func (k *kubectls) run(ctx context.Context, c command) (Output, error) {
	if slices.Contains(c.Args, "can-i") {
		// can-i exits the process when the answer is no.
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

// waits reports whether a command waits. Such commands have separate processes: their watches end a
// moment after them, and would print errors into the output of the next command.
func waits(args []string) bool {
	if slices.Contains(args, "delete") && slices.Contains(args, "--wait=false") {
		return false
	}
	return slices.ContainsFunc(args, func(arg string) bool {
		return slices.Contains([]string{"delete", "wait", "rollout"}, arg) || strings.HasPrefix(arg, "--wait")
	})
}

// alone runs a command in a new kubectl process.
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

// idle returns the idle processes for commands that wait if waits is true, and otherwise those for
// other commands.
func (k *kubectls) idle(waits bool) *[]*batch {
	if waits {
		return &k.waiting
	}
	return &k.others
}

// take returns an idle process of the right kind, or starts a process.
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

// close kills all processes. Running commands fail.
func (k *kubectls) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, b := range k.all {
		b.end()
	}
	k.all, k.waiting, k.others = nil, nil, nil
}

// batch is a process of kubectl-batch.
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

// run runs a command. After an error the process cannot run another command.
func (b *batch) run(ctx context.Context, c command) (Output, error) {
	// Killing the process ends the read.
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

// end kills the process, which ends its running command.
func (b *batch) end() {
	_ = b.Kill() // it may have ended by itself
	b.requests.Close()
	b.answers.Close()
}

// kubectlEnv returns the environment variables of a user's commands.
func (a *Access) kubectlEnv(more []string) []string {
	// Use a separate discovery cache: the default cache in $HOME is shared by all clusters that
	// ever had this port.
	return append([]string{"KUBECONFIG=" + a.kubeconfig, "KUBECACHEDIR=" + filepath.Join(a.kubectl.dir, "kubectl-cache")}, more...)
}

// Kubectl runs the kubectl of the plane's own release as this user. stdin may be nil. A non-zero
// exit code is in Output and is no error. An error means that kubectl did not run to its end.
func (a *Access) Kubectl(ctx context.Context, stdin io.Reader, args ...string) (Output, error) {
	return a.KubectlEnv(ctx, nil, stdin, args...)
}

// KubectlEnv is like Kubectl, with more environment variables in the form "NAME=value".
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
