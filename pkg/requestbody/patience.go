package requestbody

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// DefaultPatience is the time that a server waits for the next bytes of a body.
	DefaultPatience = 10 * time.Second
	// linger is the time for which the server keeps reading an HTTP/1 body after its answer. A
	// connection that is closed at once may lose the answer.
	linger = time.Second
)

// WithPatience ends bodies that stop arriving: their reader gets a 408 as an
// *apierrors.StatusError. It must be the outermost handler, because in HTTP/1 the read deadline
// belongs to the connection, and must not be set after the answer.
func WithPatience(next http.Handler, wait time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == nil || req.Body == http.NoBody {
			next.ServeHTTP(w, req)
			return
		}
		body := &patientBody{ReadCloser: req.Body, wait: wait, until: http.NewResponseController(w).SetReadDeadline, shared: req.ProtoMajor < 2}
		defer body.end()
		patient := *req
		patient.Body = body
		next.ServeHTTP(w, &patient)
	})
}

// patientBody is a body whose reads have an end.
type patientBody struct {
	io.ReadCloser
	wait time.Duration
	// until has reads fail at a time; the zero time never.
	until func(time.Time) error
	// shared is true if the deadline is one of the connection: later requests use it, and the
	// server reads to the end of this body itself.
	shared bool

	// mu guards what follows: the handler of a request that timed out may go on reading
	// when the request is over.
	mu sync.Mutex
	// reading is true if somebody waits for more.
	reading bool
	// came is true if all of it was read.
	came bool
	// over is set when the request is. Setting deadlines panics then in HTTP/2, and
	// concerns another request in HTTP/1.
	over bool
}

var errOver = errors.New("reading the body: the request has been answered")

// Read implements io.Reader. The deadline is taken back each time: between two reads the
// body may wait as long as it takes, and behind its end the connection is read for the end
// of the client, which ends the request.
func (b *patientBody) Read(into []byte) (int, error) {
	if err := b.begin(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(into)
	if failed := b.done(err); failed != nil && err == nil {
		return n, failed
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, tooSlow(b.wait)
	}
	return n, err
}

func (b *patientBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return errOver
	}
	b.reading = true
	return b.bound(time.Now().Add(b.wait))
}

func (b *patientBody) done(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	b.came = b.came || errors.Is(err, io.EOF)
	if b.over {
		return errOver
	}
	return b.bound(time.Time{})
}

func (b *patientBody) bound(until time.Time) error {
	// A server that has no connection, as in tests of handlers, does not wait either.
	if err := b.until(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bounding the wait for the body: %w", err)
	}
	return nil
}

// end leaves a deadline behind for what did not come. In HTTP/1 the server reads the rest
// of a body, up to 256 KiB, before it answers, and waits for who reads at the moment.
func (b *patientBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	if b.came || !b.shared {
		return
	}
	until := time.Now()
	if !b.reading {
		until = until.Add(linger)
	}
	// The connection has ended when this fails.
	_ = b.until(until)
}

// tooSlow is the answer to who keeps others waiting.
func tooSlow(wait time.Duration) error {
	return late(fmt.Sprintf("nothing of the body arrived for %s, and other requests are waiting: send it again", wait))
}

// late is a 408.
func late(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout, Message: message,
	}}
}
