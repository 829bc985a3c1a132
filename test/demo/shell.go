package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const commandTimeout = 2 * time.Minute

// shell runs exactly the commands that the transcript shows.
type shell struct {
	env []string
}

// newShell links the programs by name into a folder that comes first on PATH, so that the commands
// are the same as a user's who has installed the programs.
func newShell(dir string, environment []string, programs map[string]string) (*shell, error) {
	bin := filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o700); err != nil {
		return nil, fmt.Errorf("making a folder for programs: %w", err)
	}
	for name, path := range programs {
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			return nil, fmt.Errorf("linking %s: %w", path, err)
		}
	}
	return &shell{env: append(append(os.Environ(), environment...),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		// kubectl must not use the user's own cache and preferences.
		"KUBECACHEDIR="+filepath.Join(dir, "kubectl-cache"),
		"KUBERC=off",
	)}, nil
}

type result struct {
	Stdout, Stderr string
	ExitCode       int
}

// run runs a command line. A non-zero exit code is in the result; an error means that the command
// was interrupted.
func (s *shell) run(ctx context.Context, line string) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &stdout, &stderr
	// The process group allows to stop all parts of a pipe together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	out := result{Stdout: stdout.String(), Stderr: stderr.String(), ExitCode: cmd.ProcessState.ExitCode()}
	if exit := new(exec.ExitError); errors.As(err, &exit) && ctx.Err() == nil {
		err = nil
	}
	if err != nil {
		return out, fmt.Errorf("running %s: %w", strings.ReplaceAll(line, "\n", " "), errors.Join(ctx.Err(), err))
	}
	return out, nil
}
