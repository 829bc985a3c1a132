package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// patience bounds one run of kubectl or one reading of the audit log. Both also work in a
// t.Cleanup, after the test's context has ended. kubectl itself waits for poll.Patience, and then
// prints what it waited for.
const patience = poll.Patience + 2*time.Minute

// Access is a user's access to a cluster.
type Access struct {
	t      testing.TB
	access *plane.Access
}

// Config returns a client configuration of this user without client-side throttling. It is a copy
// that the caller can change.
func (a *Access) Config() *rest.Config { return a.access.Config() }

// Kubeconfig returns the path of this user's kubeconfig file.
func (a *Access) Kubeconfig() string { return a.access.Kubeconfig() }

// Kubectl runs kubectl as this user, and returns its output and exit code. A non-zero exit code
// does not fail the test.
func (a *Access) Kubectl(args ...string) Output {
	a.t.Helper()
	return a.kubectl(nil, "", args...)
}

// KubectlEnv is like KubectlInput, with more environment variables in the form "NAME=value".
func (a *Access) KubectlEnv(env []string, stdin string, args ...string) Output {
	a.t.Helper()
	return a.kubectl(env, stdin, args...)
}

// KubectlInput is like Kubectl, with stdin: "apply", "-f", "-".
func (a *Access) KubectlInput(stdin string, args ...string) Output {
	a.t.Helper()
	return a.kubectl(nil, stdin, args...)
}

// MustKubectl is like Kubectl, fails the test on a non-zero exit code, and returns stdout.
func (a *Access) MustKubectl(args ...string) string {
	a.t.Helper()
	return a.must(a.kubectl(nil, "", args...))
}

// MustKubectlInput is like KubectlInput, fails the test on a non-zero exit code, and returns
// stdout.
func (a *Access) MustKubectlInput(stdin string, args ...string) string {
	a.t.Helper()
	return a.must(a.kubectl(nil, stdin, args...))
}

func (a *Access) must(out Output) string {
	a.t.Helper()
	if out.ExitCode != 0 {
		a.t.Fatal(out)
	}
	return out.Stdout
}

// tooLate is part of kubectl's error when kube-apiserver has not answered within a minute.
// kube-apiserver handles OpenAPI requests one after another, and each waits for the server of each
// APIService.
const tooLate = "unable to return a response in the time allotted"

// kubectl runs a command, and retries it once after a tooLate error. Log lines about the retry
// begin with "noticed:", for the summary of hack/test.sh.
func (a *Access) kubectl(env []string, stdin string, args ...string) Output {
	a.t.Helper()
	stacks := make(chan []string, 1)
	watch := time.AfterFunc(slow, func() { stacks <- a.openAPIStacks() })
	out := a.runKubectl(env, stdin, args...)
	if !watch.Stop() && out.ExitCode != 0 && strings.Contains(out.Stderr, tooLate) {
		for _, line := range append([]string{a.t.Name() + ": " + out.String()}, <-stacks...) {
			a.t.Log("noticed: " + strings.ReplaceAll(line, "\n", " | "))
		}
		out = a.runKubectl(env, stdin, args...)
	}
	return out
}

// slow is the duration of a command after which kube-apiserver's goroutines are read.
const slow = 20 * time.Second

// openAPIStacks returns the goroutines of kube-apiserver that handle OpenAPI.
func (a *Access) openAPIStacks() []string {
	client, err := kubernetes.NewForConfig(a.Config())
	if err != nil {
		return []string{err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), slow)
	defer cancel()
	all, err := client.RESTClient().Get().AbsPath("/debug/pprof/goroutine").Param("debug", "2").Do(ctx).Raw()
	if err != nil {
		return []string{err.Error()}
	}
	return slices.DeleteFunc(strings.Split(string(all), "\n\n"), func(stack string) bool { return !strings.Contains(stack, "openapi") })
}

func (a *Access) runKubectl(env []string, stdin string, args ...string) Output {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := a.access.KubectlEnv(ctx, env, strings.NewReader(stdin), args...)
	if err != nil {
		a.t.Fatalf("cluster: %v\n%s", err, out.Stderr)
	}
	return Output{Output: out, Args: args}
}

// Output is the output of a kubectl run and its exit code.
type Output struct {
	plane.Output
	Args []string
}

// String shows the run as a terminal would.
func (o Output) String() string {
	return fmt.Sprintf("$ kubectl %s\n%s%s(exit %d)", strings.Join(o.Args, " "), o.Stdout, o.Stderr, o.ExitCode)
}
