package reads

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

const (
	// patience limits the preparation of a measurement.
	patience = 10 * time.Minute

	asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	asMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	asJSON     = "application/json"
)

type readsPlane struct {
	t       *testing.T
	began   time.Time
	cluster *cluster.Cluster
	program *penstock.Program
	dataDir string
	server  *penstock.Server
	// host is kube-apiserver, with its own resources and Penstock's through the aggregator. direct
	// is Penstock's own port.
	host, direct *client
}

func newReadsPlane(t *testing.T, program *penstock.Program) *readsPlane {
	t.Helper()
	if err := measure.WithoutHugePages(); err != nil {
		t.Fatal(err)
	}
	// Auditing would cost time in kube-apiserver but not in Penstock.
	c := cluster.Start(t, cluster.AllProcessors(), cluster.APIServerArgs("--audit-policy-file=", "--audit-log-path="))
	host, err := newClient(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	w := &readsPlane{t: t, began: time.Now(), cluster: c, program: program, dataDir: penstock.DataDir(t), host: host}
	w.serve()
	return w
}

func (w *readsPlane) serve() {
	w.t.Helper()
	w.server = w.program.Serve(w.t, w.cluster, w.dataDir)
	var err error
	if w.direct, err = w.connect(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *readsPlane) restart() {
	w.t.Helper()
	w.server.Stop(w.t)
	w.serve()
}

func (w *readsPlane) say(format string, args ...any) {
	fmt.Printf("%5.0f s  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, args...))
}

func (w *readsPlane) pause(d time.Duration) {
	w.t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.server.Ended():
		w.t.Fatalf("penstock has ended:\n%s", w.server.Log())
	case <-w.t.Context().Done():
		w.t.Fatal(context.Cause(w.t.Context()))
	}
}

// connect returns a client for Penstock's own port, which the aggregator uses, too.
func (w *readsPlane) connect() (*client, error) {
	var service struct {
		Spec struct {
			CABundle []byte `json:"caBundle"`
			Service  struct {
				Name, Namespace string
				Port            int
			} `json:"service"`
		} `json:"spec"`
	}
	path := "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.olm.operatorframework.io"
	if err := w.host.decode(w.t.Context(), path, &service); err != nil {
		return nil, err
	}
	config := w.cluster.Config()
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", service.Spec.Service.Port)
	config.CAData = service.Spec.CABundle
	config.ServerName = fmt.Sprintf("%s.%s.svc", service.Spec.Service.Name, service.Spec.Service.Namespace)
	return newClient(config)
}

// client sends plain requests and does not decode the answers, because a client's decoding is not
// measured.
type client struct {
	base string
	http *http.Client
}

func newClient(config *rest.Config) (*client, error) {
	// Compression would dominate the measurement here. It is meant for slow networks.
	config.DisableCompression = true
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	return &client{base: config.Host, http: httpClient}, nil
}

// do sends a request. An unsuccessful answer is an error.
func (c *client) do(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	if body != nil {
		request.Header.Set("Content-Type", asJSON)
	}
	return c.send(request)
}

func (c *client) send(request *http.Request) (*http.Response, error) {
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
	return nil, &statusError{code: response.StatusCode, text: fmt.Sprintf("%s %s: %s: %s", request.Method, request.URL.Path, response.Status, text)}
}

type statusError struct {
	code int
	text string
}

func (e *statusError) Error() string { return e.text }

func (c *client) read(ctx context.Context, path, accept string) (int64, error) {
	response, err := c.do(ctx, http.MethodGet, path, accept, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// readCompressed reads an answer that may be compressed, as kubectl requests it. It returns the
// received bytes.
func (c *client) readCompressed(ctx context.Context, path, accept string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", "gzip")
	response, err := c.send(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

// readAs reads JSON as another user.
func (c *client) readAs(ctx context.Context, path, user, group string) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Accept", asJSON)
	request.Header.Set(authenticationv1.ImpersonateUserHeader, user)
	request.Header.Set(authenticationv1.ImpersonateGroupHeader, group)
	response, err := c.send(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return io.Copy(io.Discard, response.Body)
}

func (c *client) decode(ctx context.Context, path string, into any) error {
	response, err := c.do(ctx, http.MethodGet, path, asJSON, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

func (c *client) pages(ctx context.Context, path, accept string, limit int) (int64, error) {
	total, next := int64(0), ""
	for {
		response, err := c.do(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&continue=%s", path, limit, next), accept, nil)
		if err != nil {
			return 0, err
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			return 0, err
		}
		total += int64(len(page))
		if next = continueOf(page); next == "" {
			return total, nil
		}
	}
}

// continueOf returns the token of the next page. A list begins with its metadata, so the items,
// which are most of it, need not be decoded.
func continueOf(page []byte) string {
	const key = `"continue":"`
	head := page[:min(len(page), 4096)]
	at := bytes.Index(head, []byte(key))
	if at < 0 {
		return ""
	}
	token, _, _ := bytes.Cut(head[at+len(key):], []byte(`"`))
	return string(token)
}

// beginWatch starts a watch and closes it when the server has accepted it.
func (c *client) beginWatch(ctx context.Context, path, version string) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	response, err := c.do(ctx, http.MethodGet, path+"?watch=true&allowWatchBookmarks=true&resourceVersion="+version, asJSON, nil)
	if err != nil {
		return 0, err
	}
	return 0, response.Body.Close()
}

// watchList starts a watch with the initial state, as informers do, and closes it at the bookmark
// that ends the initial state.
func (c *client) watchList(ctx context.Context, path string) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := "?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	response, err := c.do(ctx, http.MethodGet, path+query, asJSON, nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines, total := bufio.NewReaderSize(response.Body, 1<<20), int64(0)
	for {
		line, err := lines.ReadSlice('\n')
		total += int64(len(line))
		switch {
		case bytes.Contains(line, []byte(`"k8s.io/initial-events-end"`)):
			return total, nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("watching %s: %w", path, err)
		}
	}
}
