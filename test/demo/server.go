package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/penstock-project/penstock/test/framework/pod"
)

// stopTimeout bounds the time from a stop request to the end of a server.
const stopTimeout = 10 * time.Second

// server is Penstock, started again and again with the same arguments. Its output
// is appended to one log.
type server struct {
	path     string
	args     []string
	log      string
	detached bool
	// container runs in place of path and args when it is set.
	container *pod.Container

	running *running
}

// running is one life of the server.
type running struct {
	cmd     *exec.Cmd
	exited  chan struct{} // closed when it has ended
	failure error         // how it ended; read only after exited is closed
}

// start runs the program and returns at once.
func (s *server) start() error {
	output, err := os.OpenFile(s.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of penstock: %w", err)
	}
	defer output.Close()
	r := &running{cmd: s.command(), exited: make(chan struct{})}
	r.cmd.Stdout, r.cmd.Stderr = output, output
	started := make(chan error)
	go r.run(started)
	if err := <-started; err != nil {
		return fmt.Errorf("starting penstock: %w", err)
	}
	s.running = r
	return nil
}

func (s *server) command() *exec.Cmd {
	if s.container != nil {
		return s.container.Command()
	}
	command := exec.Command(s.path, s.args...)
	command.SysProcAttr = attributes(s.detached)
	return command
}

// run keeps its thread until the program ends: on Linux the parent-death signal
// comes when the thread that forked the program ends, not the process.
func (r *running) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := r.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	r.failure = r.cmd.Wait()
	close(r.exited)
}

// pid of the running program.
func (s *server) pid() int { return s.running.cmd.Process.Pid }

// alive is an error when the program has ended by itself.
func (s *server) alive() error {
	if s.running == nil {
		return errors.New("penstock was not started")
	}
	select {
	case <-s.running.exited:
		how := s.running.failure
		if how == nil {
			how = errors.New("exit status 0")
		}
		return fmt.Errorf("penstock ended by itself: %w", how)
	default:
		return nil
	}
}

// gone waits until the program, which somebody has killed, has ended.
func (s *server) gone(ctx context.Context) error {
	select {
	case <-s.running.exited:
		s.running = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of penstock: %w", context.Cause(ctx))
	}
}

// stop ends the program in good order, and by force when that takes too long. It
// is fine when it does not run.
func (s *server) stop() error {
	if s.running == nil {
		return nil
	}
	r := s.running
	s.running = nil
	select {
	case <-r.exited:
		return nil
	default:
	}
	// An error means that it ended in this moment.
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-r.exited:
		return nil
	case <-time.After(stopTimeout):
		_ = r.cmd.Process.Kill()
		<-r.exited
		return fmt.Errorf("penstock did not stop within %s and was killed", stopTimeout)
	}
}

// end returns the last lines of the log.
func (s *server) end(lines int) string {
	content, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content), lines)
}
