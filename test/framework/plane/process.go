package plane

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Process is a started program.
type Process struct {
	name    string
	log     string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the program has ended
	failure error         // how it ended; read only after exited is closed
}

// launch describes the start of a program.
type launch struct {
	// dir is the folder of the plane. The log is dir/<name>.log.
	dir, name string
	path      string
	args      []string
	detached  bool
	// processors is the number of processors that the program uses at the same time. 0 means all.
	processors int
	// env are more environment variables, in the form NAME=value.
	env []string
	// stdin and stdout are files for input and output. With them the program runs in the caller's
	// folder. Without them it has no input, writes its output to the log, and runs in dir.
	stdin, stdout *os.File
}

// spawn starts a program of the plane.
func (p *Plane) spawn(name string, detached bool, args ...string) (*Process, error) {
	started, err := p.launch(name, filepath.Join(p.tools, name), detached, args)
	if err == nil {
		p.processes = append(p.processes, started)
	}
	return started, err
}

// launch starts the program at path in the folder of the plane, without adding it to the plane.
func (p *Plane) launch(name, path string, detached bool, args []string) (*Process, error) {
	return launch{dir: p.dir, name: name, path: path, args: args, detached: detached, processors: p.options.Processors}.start()
}

// Run starts another program beside the plane. name is the name of its log in the folder, and
// program is one of the tools. The program ends with the caller, even if the caller is killed. The
// plane neither stops nor monitors it.
func (p *Plane) Run(name, program string, args ...string) (*Process, error) {
	return p.launch(name, filepath.Join(p.tools, program), false, args)
}

func (l launch) start() (*Process, error) {
	started := &Process{
		name:   l.name,
		log:    filepath.Join(l.dir, l.name+".log"),
		cmd:    exec.Command(l.path, l.args...),
		exited: make(chan struct{}),
	}
	output, err := os.OpenFile(started.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", l.name, err)
	}
	defer output.Close()
	started.cmd.Dir = l.dir
	started.cmd.Env = append(environment(l.processors), l.env...)
	started.cmd.Stdout, started.cmd.Stderr = output, output
	if l.stdin != nil {
		started.cmd.Stdin, started.cmd.Stdout = l.stdin, l.stdout
		started.cmd.Dir = ""
	}
	started.cmd.SysProcAttr = attributes(l.detached)

	result := make(chan error)
	go started.run(result)
	if err := <-result; err != nil {
		return nil, fmt.Errorf("starting %s: %w", l.name, err)
	}
	return started, nil
}

// environment returns the caller's environment with settings that trade memory for processor time.
// A control plane that lives for seconds spends a tenth to a fifth of its time on garbage
// collection. GOGC and GOMAXPROCS in the environment take precedence.
func environment(processors int) []string {
	env := os.Environ()
	if _, set := os.LookupEnv("GOGC"); !set {
		env = append(env, "GOGC=400")
	}
	if _, set := os.LookupEnv("GOMAXPROCS"); !set && processors > 0 {
		env = append(env, fmt.Sprintf("GOMAXPROCS=%d", processors))
	}
	return env
}

// run starts the program and waits for it on one operating system thread. On Linux a child with a
// parent-death signal dies with the thread that forked it, not with the process. So the thread must
// live as long as the child.
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

// died returns an error that describes how a program ended on its own, with the end of its log.
func (r *Process) died() error {
	how := "exit status 0"
	if r.failure != nil {
		how = r.failure.Error()
	}
	return fmt.Errorf("%s ended by itself (%s); the end of its log %s:\n%s", r.name, how, r.log, tail(r.log, 15))
}

// Kill kills the program and returns when it has ended. It reports a program that had ended before.
func (r *Process) Kill() error {
	select {
	case <-r.exited:
		return r.died()
	default:
	}
	// The program may have ended in this moment.
	_ = r.cmd.Process.Kill()
	<-r.exited
	return nil
}

// tail returns the last lines of a file, or the error of reading it.
func tail(file string, lines int) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimSpace(content)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Complaints returns the last 40 lines of kube-apiserver's log above the level of information,
// which alone show the requests that timed out. It omits lines about the end of a watch, and about
// APIs without resources.
func (p *Plane) Complaints() string {
	content, err := os.ReadFile(filepath.Join(p.dir, "kube-apiserver.log"))
	if err != nil {
		return err.Error()
	}
	lines := slices.Collect(strings.Lines(string(content)))
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, "I") || strings.Contains(line, "watch=true") || strings.Contains(line, "Skipping API")
	})
	return strings.Join(lines[max(0, len(lines)-40):], "")
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
