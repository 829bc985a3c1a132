// Package replicas runs Penstock as in production: three processes on an etcd cluster of three
// members over TLS, behind one Service. It can cause every fault of that setup: kill or freeze a
// process, kill a member of etcd, cut, stall or slow the network between two of them, or cut off
// the host.
//
//	set := replicas.Start(t, cluster.Start(t), penstock.Build(t))
//	set.Campaign(t, replicas.Plan{…}) // faults under load, and a verdict
//	set.KillLeader(t)                 // a single fault, in another test
//
// A balancer that forwards connections to ready replicas replaces the Service, the kubelet's probes
// and kube-proxy.
package replicas

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	// Replicas is the number of replicas of Penstock, and of members of etcd.
	Replicas = 3

	systemNamespace, leaseName = "penstock-system", "penstock-controllers"
)

// Set is a set of replicas with its etcd and balancer.
type Set struct {
	*cluster.Cluster
	program  *penstock.Program
	members  []*member
	replicas []*replica
	service  *balancer
	leases   kubernetes.Interface
	began    time.Time
}

// replica is a process of Penstock with its own network links.
type replica struct {
	*penstock.Server
	index int
	// host is the link to the host cluster. stores are the links to the members of etcd.
	host   *Link
	stores []*Link
	// source is the source address that the host sees.
	source     string
	kubeconfig string
	// flags are the flags of all replicas and the replica's addresses. own are flags of this
	// replica only.
	flags, own []string
}

// Kubeconfig implements penstock.Host.
func (r *replica) Kubeconfig() string { return r.kubeconfig }

func (r *replica) String() string { return fmt.Sprint("replica ", r.index+1) }

// Start runs three replicas until the test ends, and returns when the host serves the API and a
// replica leads.
func Start(t testing.TB, c *cluster.Cluster, program *penstock.Program, flags ...string) *Set {
	t.Helper()
	s := &Set{Cluster: c, program: program, members: startMembers(t, c, Replicas), service: newBalancer(t), began: time.Now()}
	var err error
	if s.leases, err = kubernetes.NewForConfig(c.Config()); err != nil {
		t.Fatalf("replicas: %v", err)
	}
	user := penstock.Install(t, c)
	// Penstock does not create this Service, which leads to all replicas.
	c.MustKubectl("create", "service", "externalname", "penstock", "--external-name=localhost", "--tcp="+fmt.Sprint(s.service.port()),
		"--namespace="+systemNamespace)
	for i := range Replicas {
		r := s.wire(t, i, user)
		r.flags = append(r.flags, flags...)
		s.replicas = append(s.replicas, r)
		s.launch(t, r)
	}
	for _, r := range s.replicas {
		r.Await(t, penstock.Served)
	}
	s.leader(t)
	return s
}

// wire creates the network links of a replica.
func (s *Set) wire(t testing.TB, index int, user penstock.Host) *replica {
	t.Helper()
	r := &replica{index: index}
	// On Linux every address in 127/8 is this machine. A separate source address identifies each
	// replica in the audit log.
	from := net.IPv4(127, 0, 0, byte(10+index))
	if probe, err := net.Listen("tcp", from.String()+":0"); err != nil {
		from = nil
	} else {
		r.source = from.String()
		_ = probe.Close()
	}
	config, err := clientcmd.LoadFromFile(user.Kubeconfig())
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	for _, entry := range config.Clusters {
		host, err := url.Parse(entry.Server)
		if err != nil {
			t.Fatalf("replicas: %v", err)
		}
		r.host = newLink(t, host.Host, from)
		entry.Server = "https://" + r.host.Address()
	}
	r.kubeconfig = filepath.Join(s.Plane().Dir(), fmt.Sprintf("replica-%d.kubeconfig", index))
	if err := clientcmd.WriteToFile(*config, r.kubeconfig); err != nil {
		t.Fatalf("replicas: %v", err)
	}
	var servers []string
	for _, m := range s.members {
		link := newLink(t, m.client, nil)
		r.stores = append(r.stores, link)
		servers = append(servers, "https://"+link.Address())
	}
	r.flags = []string{
		"--etcd-servers=" + strings.Join(servers, ","), "--etcd-cafile=" + s.members[0].caFile,
		"--etcd-certfile=" + s.members[0].cert, "--etcd-keyfile=" + s.members[0].keys,
		fmt.Sprint("--register-service-port=", s.service.port()),
		// This must exceed the time until the balancer sees that a replica is not ready any more.
		"--shutdown-delay-duration=1s",
	}
	return r
}

// launch starts the process of a replica and adds it to the Service.
func (s *Set) launch(t testing.TB, r *replica) {
	t.Helper()
	r.Server = s.program.Launch(t, r, "", slices.Concat(r.flags, r.own)...)
	r.Await(t, `"Ready" port=`)
	s.service.set(r.index, r.Port())
}

// holder returns the replica that holds the lease, or nil.
func (s *Set) holder(ctx context.Context) (*replica, error) {
	lease, err := s.leases.CoordinationV1().Leases(systemNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	identity := ptr.Deref(lease.Spec.HolderIdentity, "")
	for _, r := range s.replicas {
		if identity != "" && strings.Contains(r.Log(), fmt.Sprintf("identity=%q", identity)) {
			return r, nil
		}
	}
	return nil, nil
}

// leader waits until a running process holds the lease, and returns its replica.
func (s *Set) leader(t testing.TB) *replica {
	t.Helper()
	var found *replica
	s.eventually(t, "a leader", func(ctx context.Context) error {
		var err error
		found, err = s.holder(ctx)
		if err == nil && found == nil {
			err = fmt.Errorf("no process that runs holds the lease")
		}
		return err
	})
	return found
}

// KillLeader kills the leading process, like the loss of its machine. It starts the process again
// when another replica leads.
func (s *Set) KillLeader(t testing.TB) {
	t.Helper()
	lost := s.leader(t)
	lost.Kill(t)
	s.eventually(t, "another leader", func(ctx context.Context) error {
		holder, err := s.holder(ctx)
		if err == nil && (holder == nil || holder == lost) {
			err = fmt.Errorf("no other process holds the lease")
		}
		return err
	})
	s.launch(t, lost)
}

// whole waits until all replicas are ready and one replica leads.
func (s *Set) whole(t testing.TB) {
	t.Helper()
	s.eventually(t, "all replicas to be ready", func(context.Context) error {
		for _, r := range s.replicas {
			if !s.service.ready(r.index) {
				return fmt.Errorf("%s is not", r)
			}
		}
		return nil
	})
	s.leader(t)
}

// eventually polls until check returns nil.
func (s *Set) eventually(t testing.TB, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			for _, r := range s.replicas {
				t.Logf("the log of %s:\n%s", r, lastLines(r.Log(), 40))
			}
			t.Fatalf("replicas: waiting for %s: %v", what, err)
		}
	}
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// direct returns an administrator's client configuration for the Service itself, without the host.
// Its clients share no connections.
func (s *Set) direct() *rest.Config {
	config := s.Config()
	config.Host = fmt.Sprint("https://127.0.0.1:", s.service.port())
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true, CertData: config.CertData, KeyData: config.KeyData}
	config.Dial = (&net.Dialer{Timeout: requestTimeout}).DialContext
	return config
}

// signal sends a signal to the process of a replica.
func (r *replica) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(r.Pid(), signal); err != nil {
		t.Fatalf("replicas: sending a signal to %s: %v", r, err)
	}
}

// say prints progress.
func (s *Set) say(format string, args ...any) {
	fmt.Printf("%6.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// read reads a page.
func read(client *http.Client, url string) (string, error) {
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("reading %s: %s: %s", url, response.Status, body)
	}
	return string(body), err
}
