package storetest

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Proxy is a proxy between a client and its etcd. It can hold back answers: etcd executes requests,
// but no client learns the result.
type Proxy struct {
	listener net.Listener
	etcd     string

	mu          sync.Mutex
	silent      bool
	connections map[net.Conn]bool
}

// NewProxy returns a proxy in front of a client's etcd (see Client), and a client that uses it.
// Both end with the test.
func NewProxy(t testing.TB, of *clientv3.Client) (*Proxy, *clientv3.Client) {
	t.Helper()
	socket := strings.TrimPrefix(of.Endpoints()[0], "unix://")
	own := filepath.Join(filepath.Dir(socket), "proxy.sock")
	listener, err := net.Listen("unix", own)
	if err != nil {
		t.Fatalf("listening in front of etcd: %v", err)
	}
	p := &Proxy{listener: listener, etcd: socket, connections: map[net.Conn]bool{}}
	go p.accept()
	t.Cleanup(func() { _ = listener.Close(); p.Answer() })
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + own}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("connecting to etcd by the proxy: %v", err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return p, client
}

// Silence holds back all answers from now on.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

// Answer ends Silence. Held answers are lost, because the connections are closed.
func (p *Proxy) Answer() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = false
	for connection := range p.connections {
		_ = connection.Close()
	}
	clear(p.connections)
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		etcd, err := net.Dial("unix", p.etcd)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.connections[client], p.connections[etcd] = true, true
		p.mu.Unlock()
		go func() { _, _ = io.Copy(etcd, client); _ = etcd.Close() }()
		go func() { _, _ = io.Copy(answers{client, p}, etcd); _ = client.Close() }()
	}
}

// answers writes data unless the proxy is silent.
type answers struct {
	net.Conn
	proxy *Proxy
}

func (a answers) Write(data []byte) (int, error) {
	a.proxy.mu.Lock()
	silent := a.proxy.silent
	a.proxy.mu.Unlock()
	if silent {
		return len(data), nil
	}
	return a.Conn.Write(data)
}
