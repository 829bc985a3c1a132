// Command kubectl-batch runs one kubectl command after the other in one process.
// Starting kubectl takes nearly all of the time of a test's command:
// the initialisation of its packages, and a connection.
//
// It reads a request as a line of JSON and answers it with one, until its input
// ends. Each command is what the program kubectl would run, with new flags, new
// clients and an environment of its own. Only the packages and the connections to
// servers are those of the command before.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/klog/v2"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"
)

// request is a command; package plane of the test framework has the same.
type request struct {
	Args []string
	// Env are the variables of this command, as "NAME=value".
	Env   []string
	Stdin []byte
	// Waits says that it is a command that waits. Its watch ends a moment after
	// it and logs that: nothing is logged then, in this process from now on.
	Waits bool
}

// answer has the output of a command and its exit code.
type answer struct {
	Stdout, Stderr []byte
	ExitCode       int
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "kubectl-batch: %v\n", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	requests, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		a, err := r.run()
		if err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// run runs the command on files in place of the standard ones: kubectl writes to
// them in more than one way, and so do the programs that it runs.
func (r request) run() (a answer, err error) {
	stdin, stdout, stderr := os.Stdin, os.Stdout, os.Stderr
	var files [3]*os.File
	for i := range files {
		if files[i], err = unnamed(); err != nil {
			return answer{}, err
		}
		defer files[i].Close()
	}
	if _, err := files[0].WriteAt(r.Stdin, 0); err != nil {
		return answer{}, fmt.Errorf("writing the input of the command: %w", err)
	}
	os.Stdin, os.Stdout, os.Stderr = files[0], files[1], files[2]
	defer func() { os.Stdin, os.Stdout, os.Stderr = stdin, stdout, stderr }()
	defer environ(r.Env)()
	if r.Waits {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	a.ExitCode = kubectl(r.Args)
	if a.Stdout, err = content(files[1]); err != nil {
		return answer{}, err
	}
	a.Stderr, err = content(files[2])
	return a, err
}

// exit is thrown where kubectl would end the process.
type exit int

// kubectl is the main function of kubectl, and returns the exit status.
func kubectl(args []string) (status int) {
	os.Args = append([]string{"kubectl"}, args...)
	util.BehaviorOnFatal(func(message string, code int) {
		if message != "" {
			fmt.Fprintln(os.Stderr, strings.TrimSuffix(message, "\n"))
		}
		panic(exit(code))
	})
	defer func() {
		thrown := recover()
		code, ended := thrown.(exit)
		if thrown != nil && !ended {
			panic(thrown)
		}
		status = int(code)
	}()
	// As kubectl's own main does, for the same reason.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(command(args)); err != nil {
		util.CheckErr(err)
	}
	return 0
}

// cacheFolder is the variable that names the folder in which kubectl caches what servers
// answered.
const cacheFolder = "KUBECACHEDIR"

// answerTimeout is for how long a command waits for an answer unless it is told otherwise.
// kubectl waits for ever, but 32 s for discovery and OpenAPI documents, which a machine under
// full load exceeds. It also ends watches: it is longer than any command of a test waits.
const answerTimeout = 15 * time.Minute

// command is kubectl with the arguments. It is that of its own main, but for what onlyPatches
// does, and for answerTimeout.
func command(args []string) *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	creates := slices.Contains(args, "create")
	if creates {
		// kubectl caches documents, and other commands need the whole ones.
		_ = os.Setenv(cacheFolder, filepath.Join(os.Getenv(cacheFolder), "create"))
	}
	flags := genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().
		WithDiscoveryBurst(300).WithDiscoveryQPS(50.0).WithWarningPrinter(streams)
	flags = flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		if config.Timeout == 0 {
			config.Timeout = answerTimeout
		}
		if creates {
			config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyPatches{next} })
		}
		return config
	})
	return cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     os.Args,
		ConfigFlags:   flags,
		IOStreams:     streams,
	})
}

// environ sets variables and returns what sets them back.
func environ(variables []string) (restore func()) {
	before := os.Environ()
	for _, variable := range variables {
		name, value, _ := strings.Cut(variable, "=")
		_ = os.Setenv(name, value) // of a process: it is well-formed
	}
	return func() {
		os.Clearenv()
		for _, variable := range before {
			name, value, _ := strings.Cut(variable, "=")
			_ = os.Setenv(name, value)
		}
	}
}

// unnamed is a file that is gone when it is closed.
func unnamed() (*os.File, error) {
	file, err := os.CreateTemp("", "kubectl-batch-")
	if err != nil {
		return nil, fmt.Errorf("making a file for the command: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, fmt.Errorf("removing the name of a file for the command: %w", err)
	}
	return file, nil
}

func content(file *os.File) ([]byte, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading what the command printed: %w", err)
	}
	all, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading what the command printed: %w", err)
	}
	return all, nil
}
