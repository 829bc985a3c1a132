//go:build integration

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// podGrace is the grace period of a Pod in artifacts/deploy.
const podGrace = 30 * time.Second

// storeProcess tests the process that runs the embedded etcd.
type storeProcess struct {
	*cluster.Cluster
	t       *testing.T
	program *penstock.Program
	dir     string
}

func (s storeProcess) in(t *testing.T) storeProcess {
	s.Cluster, s.t = s.Cluster.In(t), t
	return s
}

// starts runs the program. It returns when the controllers run and the process of etcd is known.
func (s storeProcess) starts() (server *penstock.Server, etcd int) {
	s.t.Helper()
	server = s.program.Serve(s.t, s.Cluster, s.dir)
	server.Await(s.t, "starting the controllers")
	if etcd = server.Etcd(s.t); etcd == 0 {
		s.t.Fatal("the program has started no process for etcd")
	}
	return server, etcd
}

// sends sends a signal to a process.
func (s storeProcess) sends(signal syscall.Signal, pid int) {
	s.t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		s.t.Fatal(err)
	}
}

// stops tells the program to end, and checks that it ends in time.
func (s storeProcess) stops(server *penstock.Server, within time.Duration) {
	s.t.Helper()
	// If the program hangs, SIGQUIT shows where.
	watch := time.AfterFunc(podGrace, func() { _ = syscall.Kill(server.Pid(), syscall.SIGQUIT) })
	defer watch.Stop()
	took := server.Stop(s.t)
	s.t.Logf("stopping took %s", took)
	if took > within {
		s.t.Errorf("stopping took %s, longer than %s", took, within)
	}
}

// killed: etcd is killed. A new etcd starts, and everything continues.
func (s storeProcess) killed() {
	server, etcd := s.starts()
	s.sends(syscall.SIGKILL, etcd)
	eventually(s.t, "another etcd", func() error {
		if now := server.Etcd(s.t); now == 0 || now == etcd {
			return errors.New("no new etcd runs")
		}
		if out := s.Kubectl("annotate", "cer", "argocd-1", "--overwrite", "example.com/at="+time.Now().Format("150405.000000")); out.ExitCode != 0 {
			return errors.New(out.String())
		}
		return nil
	})
	// The ConfigMap may be missing: the scenario before may have deleted it, and the repair can still
	// be in progress.
	s.MustKubectl("delete", "configmap", "first", "--ignore-not-found")
	eventually(s.t, "the controllers", func() error {
		if out := s.Kubectl("get", "configmap", "first"); out.ExitCode != 0 {
			return errors.New(out.String())
		}
		return nil
	})
	s.stops(server, podGrace)
}

// killedWhenStopping: etcd ends before the program has made its last write.
func (s storeProcess) killedWhenStopping() {
	server, etcd := s.starts()
	s.sends(syscall.SIGKILL, etcd)
	s.stops(server, podGrace)
}

// goneWhenStopping: etcd ends and cannot start again.
func (s storeProcess) goneWhenStopping() {
	server, etcd := s.starts()
	// A request waits for etcd when it ends.
	s.sends(syscall.SIGSTOP, etcd)
	defer s.patches(server)()
	away := filepath.Join(s.dir, "away")
	if err := os.Rename(filepath.Join(s.dir, "etcd"), away); err != nil {
		s.t.Fatal(err)
	}
	s.sends(syscall.SIGKILL, etcd)
	eventually(s.t, "the reason", func() error {
		out := s.Kubectl("get", "cer")
		return missing(out.Stderr, []string{"the embedded etcd does not run", "the store that was there is gone"})
	})
	s.stops(server, podGrace)
	if err := os.Rename(away, filepath.Join(s.dir, "etcd")); err != nil {
		s.t.Fatal(err)
	}
}

// hungWhenStopping: etcd does not answer, as with a disk that hangs, and a request waits for it.
func (s storeProcess) hungWhenStopping() {
	server, etcd := s.starts()
	s.sends(syscall.SIGSTOP, etcd)
	defer s.patches(server)()
	s.stops(server, podGrace)
}

// patches sends a patch of a revision directly to the program and returns when it is sent. The
// function that it returns cancels the request.
func (s storeProcess) patches(server *penstock.Server) (stop func()) {
	s.t.Helper()
	config := server.Direct(s.Config())
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	sent, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(httptrace.WithClientTrace(s.t.Context(), &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { close(sent) },
	}))
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch,
		config.Host+"/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/argocd-1",
		strings.NewReader(`{"metadata":{"annotations":{"example.com/hung":"yes"}}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", string(types.MergePatchType))
	go func() {
		defer close(ended)
		if response, err := client.Do(request); err == nil {
			s.t.Logf("the request was answered with %s", response.Status)
			_ = response.Body.Close()
		}
	}()
	select {
	case <-sent:
	case <-time.After(poll.Patience):
		s.t.Fatal("the request cannot be sent")
	}
	return func() { cancel(); <-ended }
}

// told: a user signals all processes of a service. etcd ends no earlier than the program.
func (s storeProcess) told() {
	server, etcd := s.starts()
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM} {
		s.sends(signal, etcd)
	}
	s.MustKubectl("annotate", "cer", "argocd-1", "--overwrite", "example.com/told=yes")
	s.stops(server, podGrace)
	if log := server.Log(); strings.Contains(log, "The embedded etcd has ended") {
		s.t.Errorf("etcd ended before the program:\n%s", log)
	}
}

// orphan: a killed program leaves no etcd behind.
func (s storeProcess) orphan() {
	server, etcd := s.starts()
	server.Kill(s.t)
	eventually(s.t, "the end of etcd", func() error {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", etcd))
		// A process that has ended has no command line.
		if err == nil && len(command) > 0 {
			return fmt.Errorf("etcd still runs: %q", command)
		}
		return nil
	})
}

// run runs all scenarios on one store, one after another.
func (s storeProcess) run() {
	for name, test := range map[string]func(storeProcess){
		"Killed":             storeProcess.killed,
		"KilledWhenStopping": storeProcess.killedWhenStopping,
		"GoneWhenStopping":   storeProcess.goneWhenStopping,
		"HungWhenStopping":   storeProcess.hungWhenStopping,
		"Told":               storeProcess.told,
		"Orphan":             storeProcess.orphan,
	} {
		s.t.Run(name, func(t *testing.T) { test(s.in(t)) })
	}
}
