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

// stopTimeout limits the time from a stop request to the exit of a server.
const stopTimeout = 10 * time.Second

// server is Penstock, restarted with the same arguments. Its output is appended to one log.
type server struct {
	path     string
	args     []string
	log      string
	detached bool
	// container is run instead of path and args if it is set.
	container *pod.Container

	running *running
}

type running struct {
	cmd     *exec.Cmd
	exited  chan struct{} // closed after the exit
	failure error         // the reason of the exit; read only after exited is closed
}

// start starts the program without waiting.
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

// run stays on one thread until the program exits. On Linux the parent-death signal is sent when
// the forking thread ends, not the process.
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

func (s *server) pid() int { return s.running.cmd.Process.Pid }

// alive returns an error if the program has exited by itself.
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

// gone waits until the killed program has exited.
func (s *server) gone(ctx context.Context) error {
	select {
	case <-s.running.exited:
		s.running = nil
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the end of penstock: %w", context.Cause(ctx))
	}
}

// stop stops the program gracefully, and kills it after a timeout. It does nothing if the program
// does not run.
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
	// An error means that the program is just exiting.
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

func (s *server) end(lines int) string {
	content, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content), lines)
}
