//go:build integration

package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// revisionLog: the log lines with one key tell the history of a revision.
func (m monitored) revisionLog(t *testing.T) {
	var told []string
	for line := range strings.Lines(m.server.Log()) {
		if strings.Contains(line, `revision="argocd-1"`) {
			told = append(told, line)
		}
	}
	all := strings.Join(told, "")
	for _, want := range []string{`condition="Progressing" status="True"`, `condition="Succeeded" status="True"`, `condition="Available" status="True"`} {
		if !strings.Contains(all, want) {
			t.Errorf("the log of the revision lacks %s:\n%s", want, all)
		}
	}
}

// audited: the audit log of the example policy says who did what, with our annotations. It does not
// have the content of the writes.
func audited(t *testing.T, path string) {
	eventually(t, "the audit log", func() error {
		log, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, want := range []string{`"penstock.dev/pack":"sha256:`, `"privilege.policy.penstock.dev/decision":`, `"verb":"create"`, `"name":"argocd-1"`} {
			if !strings.Contains(string(log), want) {
				return fmt.Errorf("the log lacks %s", want)
			}
		}
		for _, not := range []string{"requestObject", "responseObject", "example.com/server"} {
			if strings.Contains(string(log), not) {
				t.Fatalf("the log has %s:\n%s", not, log)
			}
		}
		return nil
	})
}

// traces receives the spans of a server, as an OpenTelemetry collector does.
type traces struct {
	collector.UnimplementedTraceServiceServer
	config string

	mu    sync.Mutex
	spans map[string]bool
}

// collectTraces runs a collector until the test ends.
func collectTraces(t *testing.T) *traces {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &traces{config: filepath.Join(t.TempDir(), "tracing.yaml"), spans: map[string]bool{}}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	example, err := os.ReadFile("../../artifacts/examples/tracing.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The example samples few requests and uses the default port.
	text := strings.NewReplacer("localhost:4317", listener.Addr().String(), "samplingRatePerMillion: 1000", "samplingRatePerMillion: 1000000").Replace(string(example))
	if err := os.WriteFile(c.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

// Export implements the collector's service.
func (c *traces) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans[span.Name] = true
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// see waits for the spans of requests, of their authorization and of their calls to etcd.
func (c *traces) see(t *testing.T) {
	eventually(t, "spans", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		var errs []error
		for _, want := range []string{"Create", "authorization", "Create etcd3"} {
			if !c.spans[want] {
				errs = append(errs, fmt.Errorf("there is no span %q among %v", want, c.spans))
			}
		}
		return errors.Join(errs...)
	})
}
