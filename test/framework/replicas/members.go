package replicas

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/port"
)

// member is a member of an etcd cluster. Clients connect over TLS and need a certificate.
type member struct {
	name               string
	plane              *plane.Plane
	client, peer       string // addresses
	args               []string
	process            *plane.Process
	caFile, cert, keys string
}

// startMembers starts a separate etcd cluster beside the etcd of the control plane. The control
// plane's authority signs its certificates.
func startMembers(t testing.TB, c *cluster.Cluster, n int, more ...string) []*member {
	t.Helper()
	dir := c.Plane().Dir()
	user := c.User("penstock-etcd").Config()
	cert, keys := filepath.Join(dir, "etcd-client.crt"), filepath.Join(dir, "etcd-client.key")
	for file, content := range map[string][]byte{cert: user.CertData, keys: user.KeyData} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatalf("replicas: %v", err)
		}
	}
	members := make([]*member, n)
	var all []string
	for i := range members {
		m := &member{name: fmt.Sprint("member-", i+1), plane: c.Plane(), client: freeAddress(t, c.Plane()), peer: freeAddress(t, c.Plane()),
			caFile: filepath.Join(dir, "pki", "ca.crt"), cert: cert, keys: keys}
		members[i] = m
		all = append(all, m.name+"=http://"+m.peer)
	}
	for _, m := range members {
		m.args = append([]string{
			"--name=" + m.name, "--data-dir=" + filepath.Join(dir, m.name),
			"--listen-client-urls=https://" + m.client, "--advertise-client-urls=https://" + m.client,
			"--listen-peer-urls=http://" + m.peer, "--initial-advertise-peer-urls=http://" + m.peer,
			"--initial-cluster=" + strings.Join(all, ","), "--enable-grpc-gateway=false",
			"--cert-file=" + filepath.Join(dir, "pki", "apiserver.crt"), "--key-file=" + filepath.Join(dir, "pki", "apiserver.key"),
			"--trusted-ca-file=" + m.caFile, "--client-cert-auth",
			// Data given to the kernel survives a killed process. These tests do not switch
			// machines off.
			"--unsafe-no-fsync", "--log-level=error", "--watch-progress-notify-interval=5s",
		}, more...)
		m.start(t)
		t.Cleanup(func() { _ = m.process.Kill() })
	}
	for _, m := range members {
		m.wait(t)
	}
	return members
}

func (m *member) start(t testing.TB) {
	t.Helper()
	var err error
	if m.process, err = m.plane.Run(m.name, "etcd", m.args...); err != nil {
		t.Fatalf("replicas: %v", err)
	}
}

// dial returns a client of some members.
func dial(t testing.TB, members ...*member) *clientv3.Client {
	t.Helper()
	info := transport.TLSInfo{CertFile: members[0].cert, KeyFile: members[0].keys, TrustedCAFile: members[0].caFile}
	config, err := info.ClientConfig()
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	var endpoints []string
	for _, m := range members {
		endpoints = append(endpoints, "https://"+m.client)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, DialTimeout: poll.Patience, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	return client
}

// wait waits until the member has caught up: it answers a linearizable read.
func (m *member) wait(t testing.TB) {
	t.Helper()
	client := dial(t, m)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), poll.Patience)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, time.Second)
		_, err := client.Get(attempt, "ready")
		done()
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("replicas: etcd %s does not answer: %v", m.name, err)
		}
	}
}

// freeAddress returns an address with a free port.
func freeAddress(t testing.TB, beside *plane.Plane) string {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	return fmt.Sprint(beside.Address(), ":", free)
}
