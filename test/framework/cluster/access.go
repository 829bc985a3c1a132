package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// patience bounds one run of kubectl or one reading of the audit log. Both also
// work in a t.Cleanup, where the context of the test has already ended. kubectl itself waits
// for poll.Patience, and says then what it has waited for.
const patience = poll.Patience + 2*time.Minute

// Access is somebody's way into a cluster.
type Access struct {
	t      testing.TB
	access *plane.Access
}

// Config is a client configuration of this user without client-side
// throttling. It is a copy: change it freely.
func (a *Access) Config() *rest.Config { return a.access.Config() }

// Kubeconfig is the path of this user's kubeconfig file.
func (a *Access) Kubeconfig() string { return a.access.Kubeconfig() }

// Kubectl runs kubectl as this user and returns what it printed and how it
// ended; a non-zero exit does not fail the test.
func (a *Access) Kubectl(args ...string) Output {
	a.t.Helper()
	return a.kubectl(nil, nil, args...)
}

// KubectlEnv is KubectlInput with more variables in kubectl's environment, as
// "NAME=value".
func (a *Access) KubectlEnv(env []string, stdin string, args ...string) Output {
	a.t.Helper()
	return a.kubectl(env, strings.NewReader(stdin), args...)
}

// KubectlInput is Kubectl with something on stdin: "apply", "-f", "-".
func (a *Access) KubectlInput(stdin string, args ...string) Output {
	a.t.Helper()
	return a.kubectl(nil, strings.NewReader(stdin), args...)
}

// MustKubectl is Kubectl that has to succeed; it returns stdout.
func (a *Access) MustKubectl(args ...string) string {
	a.t.Helper()
	return a.must(a.kubectl(nil, nil, args...))
}

// MustKubectlInput is KubectlInput that has to succeed; it returns stdout.
func (a *Access) MustKubectlInput(stdin string, args ...string) string {
	a.t.Helper()
	return a.must(a.kubectl(nil, strings.NewReader(stdin), args...))
}

func (a *Access) must(out Output) string {
	a.t.Helper()
	if out.ExitCode != 0 {
		a.t.Fatal(out)
	}
	return out.Stdout
}

func (a *Access) kubectl(env []string, stdin io.Reader, args ...string) Output {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := a.access.KubectlEnv(ctx, env, stdin, args...)
	if err != nil {
		a.t.Fatalf("cluster: %v\n%s", err, out.Stderr)
	}
	return Output{Output: out, Args: args}
}

// Output is what a run of kubectl printed and how it ended.
type Output struct {
	plane.Output
	Args []string
}

// String is the run as a terminal would show it.
func (o Output) String() string {
	return fmt.Sprintf("$ kubectl %s\n%s%s(exit %d)", strings.Join(o.Args, " "), o.Stdout, o.Stderr, o.ExitCode)
}
