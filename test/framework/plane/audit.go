package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
)

// fenceAgent is the user agent of the requests that mark how far the log must be read. They never
// appear in a result.
const fenceAgent = "penstock-audit-fence"

// Audit reads the requests to kube-apiserver from its audit log. Their number is exact: each
// request that was answered before a call of Mark or Since is counted.
type Audit struct {
	path   string
	host   string
	client *http.Client

	mu       sync.Mutex
	offset   int64            // the part of the log that was read
	requests []Request        // in the order in which they were first logged
	index    map[auditKey]int // position in requests
	fences   map[string]bool
}

// Mark is a point in the audit log.
type Mark int

type auditKey struct {
	id       string
	received int64
}

func newAudit(path string, config *rest.Config) (*Audit, error) {
	config.UserAgent = fenceAgent
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making the client of the audit log: %w", err)
	}
	return &Audit{path: path, host: config.Host, client: client, index: map[auditKey]int{}, fences: map[string]bool{}}, nil
}

// Mark returns the current end of the log.
func (a *Audit) Mark(ctx context.Context) (Mark, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.catchUp(ctx)
	return Mark(len(a.requests)), err
}

// Since returns the requests after a mark (all requests for the zero Mark) that pass every filter.
// Requests are logged when they are answered, watches when they begin.
func (a *Audit) Since(ctx context.Context, mark Mark, filters ...Filter) (Requests, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.catchUp(ctx); err != nil {
		return nil, err
	}
	return Requests(a.requests[min(int(mark), len(a.requests)):]).Where(filters...), nil
}

// catchUp reads the log up to all requests answered before the call. kube-apiserver may write a
// request's line after its answer. So catchUp sends its own request and waits for it in the log.
func (a *Audit) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	uri := "/version?fence=" + rand.String(10)
	if err := a.ask(ctx, uri); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	err := wait.PollUntilContextCancel(ctx, 2*time.Millisecond, true, func(context.Context) (bool, error) {
		if err := a.read(); err != nil {
			return false, err
		}
		return a.fences[uri], nil
	})
	if err != nil {
		return fmt.Errorf("reading the audit log %s: %w", a.path, err)
	}
	delete(a.fences, uri)
	return nil
}

func (a *Audit) ask(ctx context.Context, uri string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.host+uri, nil)
	if err != nil {
		return err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

// read adds the new complete lines of the log.
func (a *Audit) read() error {
	file, err := os.Open(a.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	added, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	for {
		line, rest, found := bytes.Cut(added, []byte("\n"))
		if !found {
			return nil
		}
		if err := a.add(line); err != nil {
			return err
		}
		a.offset += int64(len(line)) + 1
		added = rest
	}
}

// add adds an event. A watch has two events, for its begin and its end, and counts as one request.
func (a *Audit) add(line []byte) error {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("parsing audit event %q: %w", line, err)
	}
	if event.UserAgent == fenceAgent {
		a.fences[event.RequestURI] = true
		return nil
	}
	// A client can choose the audit ID of its requests, even the same ID for all.
	key := auditKey{id: event.AuditID, received: event.Received.UnixNano()}
	if at, found := a.index[key]; found {
		a.requests[at] = event.request()
		return nil
	}
	a.index[key] = len(a.requests)
	a.requests = append(a.requests, event.request())
	return nil
}
