package plane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Process is one running program.
type Process struct {
	name    string
	log     string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the program has ended
	failure error         // how it ended; read only after exited is closed
}

// spawn starts a program in the folder of the plane, its output appended to
// <name>.log there.
func (p *Plane) spawn(name string, detached bool, args ...string) (*Process, error) {
	started, err := run(p.dir, filepath.Join(p.tools, name), name, detached, args)
	if err == nil {
		p.processes = append(p.processes, started)
	}
	return started, err
}

// Run starts one more program beside the plane: name is that of its log in the
// folder, program one of the tools. It dies with the caller, however that ends.
// The plane neither stops it nor minds when it ends.
func (p *Plane) Run(name, program string, args ...string) (*Process, error) {
	return run(p.dir, filepath.Join(p.tools, program), name, false, args)
}

func run(dir, path, name string, detached bool, args []string) (*Process, error) {
	return runOn(nil, nil, dir, path, name, detached, args)
}

// runOn is run with files for input and output, and in the folder of the caller;
// without them, there is no input, and the output is in the log.
func runOn(stdin, stdout *os.File, dir, path, name string, detached bool, args []string) (*Process, error) {
	started := &Process{
		name:   name,
		log:    filepath.Join(dir, name+".log"),
		cmd:    exec.Command(path, args...),
		exited: make(chan struct{}),
	}
	output, err := os.OpenFile(started.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", name, err)
	}
	defer output.Close()
	started.cmd.Dir = dir
	started.cmd.Env = environment()
	started.cmd.Stdout, started.cmd.Stderr = output, output
	if stdin != nil {
		started.cmd.Stdin, started.cmd.Stdout = stdin, stdout
		started.cmd.Dir = ""
	}
	started.cmd.SysProcAttr = attributes(detached)

	result := make(chan error)
	go started.run(result)
	if err := <-result; err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return started, nil
}

// environment is that of the caller, with memory taken for processor time: a tenth
// to a fifth of the time of a control plane that lives for seconds is collecting
// garbage. Who sets GOGC is obeyed.
func environment() []string {
	if _, set := os.LookupEnv("GOGC"); set {
		return os.Environ()
	}
	return append(os.Environ(), "GOGC=400")
}

// run starts the program and waits for its end on one operating system thread.
// On Linux a child with a parent-death signal dies with the thread that forked
// it, not with the process: the thread must not end before the child does.
func (r *Process) run(started chan<- error) {
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

// died says how a program ended on its own, with the end of its log.
func (r *Process) died() error {
	how := "exit status 0"
	if r.failure != nil {
		how = r.failure.Error()
	}
	return fmt.Errorf("%s ended by itself (%s); the end of its log %s:\n%s", r.name, how, r.log, tail(r.log, 15))
}

// Kill ends the program at once and returns when it is gone. It reports a program
// that had ended before.
func (r *Process) Kill() error {
	select {
	case <-r.exited:
		return r.died()
	default:
	}
	// An error means that it ended in this moment.
	_ = r.cmd.Process.Kill()
	<-r.exited
	return nil
}

// tail returns the last lines of a file, or why it cannot be read.
func tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Pid returns the process id of a program of the plane: "etcd", "kube-apiserver".
func (p *Plane) Pid(program string) (int, error) {
	for _, running := range p.processes {
		if running.name == program {
			return running.cmd.Process.Pid, nil
		}
	}
	return 0, fmt.Errorf("the control plane in %s has no %s", p.dir, program)
}
