package etcd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.uber.org/zap/zapcore"
)

const (
	// retryLeast and retryMost bound the pause before etcd is restarted. The pause doubles each
	// time. It is retryLeast again after etcd has run for retrySettled.
	retryLeast   = time.Second
	retryMost    = 8 * time.Second
	retrySettled = time.Minute
	// stopTimeout bounds the orderly end of etcd. A killed etcd loses nothing, and a Pod has 30 s
	// in all to end.
	stopTimeout = 5 * time.Second
	// startPatience is the time that a start waits for etcd before it continues without etcd.
	startPatience = 15 * time.Second
	tailBytes     = 8 << 10
)

// Process runs an etcd in a child process, and restarts it when it ends. No failure of the disk or
// of etcd ends this process: Down returns the failure.
type Process struct {
	config        Config
	dir, endpoint string
	// command runs ServeChild.
	command []string
	cancel  context.CancelFunc
	ended   chan struct{}
	// tried is closed when etcd first answers or fails.
	tried chan struct{}

	mu   sync.Mutex
	lock *fileutil.LockedFile
	// down is the reason why etcd does not run; nil while it runs.
	down  error
	since time.Time
	// store is the etcd directory, recorded when etcd first answered.
	store os.FileInfo
	pid   int
}

// StartProcess runs an etcd on a data directory, by a command that calls ServeChild. It returns
// when etcd answers, when etcd fails for the first time, or after startPatience. If another process
// uses the directory, it returns an error at once.
func StartProcess(ctx context.Context, config Config, command ...string) (*Process, error) {
	dir, err := filepath.Abs(config.DataDir)
	if err != nil {
		return nil, fmt.Errorf("resolving data directory %s: %w", config.DataDir, err)
	}
	socket, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	p := &Process{
		config: config, dir: dir, endpoint: "unix://" + socket, command: command,
		ended: make(chan struct{}), tried: make(chan struct{}), down: errors.New("it is starting"), since: time.Now(),
	}
	var used *inUseError
	if err := p.acquire(); errors.As(err, &used) {
		return nil, err
	}
	// etcd outlives ctx: other parts need it while they stop. Close ends it.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.cancel = cancel
	go p.run(running)
	select {
	case <-p.tried:
		return p, nil
	case <-time.After(startPatience):
		return p, nil
	case <-ctx.Done():
		err := context.Cause(ctx)
		p.Close()
		return nil, err
	}
}

// Endpoint returns the address for clients.
func (p *Process) Endpoint() string { return p.endpoint }

// Down returns the reason why etcd does not run, and since when. The reason is nil while etcd runs.
func (p *Process) Down() (since time.Time, reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.since, p.down
}

// Close ends etcd and releases the data directory. Close clients first. It may be called more than
// once.
func (p *Process) Close() {
	p.cancel()
	<-p.ended
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock != nil {
		// The kernel releases the lock with the file, so an error changes nothing.
		_ = p.lock.Close()
		p.lock = nil
	}
}

func (p *Process) acquire() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lock != nil {
		return nil
	}
	lock, err := lockDir(p.dir)
	p.lock = lock
	return err
}

func (p *Process) run(ctx context.Context) {
	defer close(p.ended)
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		began := time.Now()
		err := p.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > retrySettled {
			wait = retryLeast
		}
		p.config.Log.Error(err, "The embedded etcd has ended; starting it again", "after", wait)
		p.set(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (p *Process) set(down error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (p.down == nil) != (down == nil) {
		p.since = time.Now()
	}
	p.down = down
	select {
	case <-p.tried:
	default:
		close(p.tried)
	}
}

// serve runs one etcd process and returns the reason of its end.
func (p *Process) serve(ctx context.Context) error {
	if err := p.acquire(); err != nil {
		return err
	}
	if err := p.checkStore(); err != nil {
		return err
	}
	cmd := exec.Command(p.command[0], p.command[1:]...)
	separate(cmd)
	tail := &tail{}
	cmd.Stderr = tail
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting a process for etcd: %w", err)
	}
	p.mu.Lock()
	p.pid = cmd.Process.Pid
	p.mu.Unlock()
	stopped := p.stopWith(ctx, cmd, in)
	text, _ := json.Marshal(order{DataDir: p.dir, QuotaBytes: p.config.QuotaBytes})
	// A write fails only if the process has ended. listen then returns the reason.
	_, _ = in.Write(append(text, '\n'))
	last := p.listen(out)
	err = cmd.Wait()
	stopped()
	return p.reason(err, last, tail.String())
}

// stopWith ends a process when ctx ends, in good order if possible.
func (p *Process) stopWith(ctx context.Context, cmd *exec.Cmd, in io.WriteCloser) (done func()) {
	ended := make(chan struct{})
	go func() {
		select {
		case <-ended:
			return
		case <-ctx.Done():
		}
		// A write fails only if the process has ended.
		_, _ = io.WriteString(in, stopOrder+"\n")
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			_ = cmd.Process.Kill()
		}
	}()
	return func() { close(ended) }
}

// listen logs the messages of an etcd until it ends, and returns its last error.
func (p *Process) listen(out io.Reader) *entry {
	var last *entry
	lines := bufio.NewReader(out)
	for {
		text, err := lines.ReadBytes('\n')
		if err != nil {
			return last
		}
		var said line
		if json.Unmarshal(text, &said) != nil {
			// A library has printed this line. It must be read, or its writer would block for ever.
			p.config.Log.Info("The embedded etcd has printed something", "printed", string(bytes.TrimSpace(text)))
			continue
		}
		if said.Ready {
			p.remember()
			p.set(nil)
		}
		if said.Entry != nil {
			said.Entry.to(p.config.Log)
			if said.Entry.Level >= zapcore.ErrorLevel {
				last = said.Entry
			}
		}
	}
}

func (p *Process) remember() {
	info, err := os.Stat(filepath.Join(dataDir(p.dir), "member"))
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.store == nil {
		p.store = info
	}
}

// checkStore refuses a store that differs from the store served before. A client that watches etcd
// would see missing records as deleted.
func (p *Process) checkStore() error {
	p.mu.Lock()
	known := p.store
	p.mu.Unlock()
	if known == nil {
		return nil
	}
	path := filepath.Join(dataDir(p.dir), "member")
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("the store that was there is gone: %w", err)
	}
	if !os.SameFile(info, known) {
		return fmt.Errorf("%s is not the same directory as before: restart penstock, which checks whether it is the right store", path)
	}
	return nil
}

// reason returns the reason of the end of an etcd: its last error, or else its last printed line.
func (p *Process) reason(exit error, last *entry, printed string) error {
	if exit == nil {
		exit = errors.New("it ended by itself")
	}
	if printed != "" {
		p.config.Log.Error(exit, "The last output of the embedded etcd", "printed", printed)
	}
	switch {
	case last != nil && last.Level >= zapcore.DPanicLevel, last != nil && printed == "":
		if cause, ok := last.Fields["error"]; ok {
			return fmt.Errorf("%s: %v", last.Message, cause)
		}
		return errors.New(last.Message)
	case printed != "":
		first, _, _ := bytes.Cut([]byte(printed), []byte("\n"))
		return errors.New(string(first))
	default:
		return exit
	}
}

// tail keeps the first bytes that a process prints.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// The start of the output names the cause of a panic; stacks follow.
	t.text = append(t.text, text[:min(len(text), tailBytes-len(t.text))]...)
	return len(text), nil
}

// String returns the kept text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}
