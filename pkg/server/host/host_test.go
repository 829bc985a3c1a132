package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fakeHost answers /version, and sends each user agent to a channel.
func fakeHost(t *testing.T, listener net.Listener) <-chan string {
	t.Helper()
	agents := make(chan string, 10)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		agents <- r.UserAgent()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
	})}}
	server.Start()
	t.Cleanup(server.Close)
	return agents
}

func kubeconfigFor(t *testing.T, address string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := "apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
		"clusters: [{name: c, cluster: {server: \"http://" + address + "\"}}]\n" +
		"contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestWaitForHost: Wait waits for a host that does not answer yet.
func TestWaitForHost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	h, err := New(kubeconfigFor(t, address), "v1")
	if err != nil {
		t.Fatal(err)
	}

	stopped, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := h.Wait(stopped); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("waiting for nobody ended with %v", err)
	}

	done := make(chan error, 1)
	go func() { done <- h.Wait(t.Context()) }()
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Skipf("somebody else took the port: %v", err)
	}
	agents := fakeHost(t, listener)
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the host is there and not found")
	}
	if agent := <-agents; agent != "penstock/v1/start" {
		t.Errorf("the request came from %q", agent)
	}
}

// TestHostRefusesCredentials: wrong credentials are an error after a while. Otherwise an
// administrator would not notice them.
func TestHostRefusesCredentials(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}`))
	}))
	t.Cleanup(server.Close)
	h, err := New(kubeconfigFor(t, server.Listener.Addr().String()), "v1")
	if err != nil {
		t.Fatal(err)
	}
	h.credentialsPatience = time.Millisecond
	if err := h.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "does not accept the credentials") || !strings.Contains(err.Error(), server.Listener.Addr().String()) {
		t.Errorf("a host that refuses the credentials: %v", err)
	}
}

func TestUserAgentOfOthersClients(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	agents := fakeHost(t, listener)
	h := &Host{version: "v1"}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("User-Agent", "library")
	response, err := h.WithUserAgent("authorization")(http.DefaultTransport).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if agent := <-agents; agent != "penstock/v1/authorization" {
		t.Errorf("the request came from %q", agent)
	}
	if own := request.Header.Get("User-Agent"); own != "library" {
		t.Errorf("the caller's request was changed to %q", own)
	}
}

func TestKubeconfigErrors(t *testing.T) {
	if _, err := New(filepath.Join(t.TempDir(), "none"), "v1"); err == nil {
		t.Error("a kubeconfig that is not there is no error")
	}
}

// TestTestedMinors: the tested minors of the host match the pinned programs.
func TestTestedMinors(t *testing.T) {
	var want, got []string
	for minor := oldestMinor; minor <= newestMinor; minor++ {
		want = append(want, fmt.Sprintf("v1.%d", minor))
	}
	folders, err := filepath.Glob("../../../hack/tools/v1.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		got = append(got, filepath.Base(folder))
	}
	if !slices.Equal(got, want) {
		t.Errorf("hack/tools pins the hosts %v, want %v", got, want)
	}
}

func TestDoubtOf(t *testing.T) {
	for version, want := range map[string]string{
		"v1.36.3": "", "v1.34.0-eks-1a2b3c": "", "v1.35.4+k3s1": "",
		"v1.33.9": "the oldest one is 1.34", "v1.37.2": "", "v1.38.0": "the newest one is 1.37", "v2.0.0": "the oldest one is 1.34",
		"unknown": `it cannot be read: could not parse "unknown" as version`,
	} {
		if got := doubtOf(version); got != want {
			t.Errorf("%s: got %q, want %q", version, got, want)
		}
	}
}
