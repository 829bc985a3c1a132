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
	// linger is the time that the server keeps reading an HTTP/1 body after its answer. If it
	// closed the connection at once, the client could lose the answer.
	linger = time.Second
)

// WithPatience ends bodies that stop arriving: their reader gets a 408 as an
// *apierrors.StatusError. It must be the outermost handler: in HTTP/1 the read deadline belongs to
// the connection, and must not be set after the answer.
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

// patientBody is a body whose reads have a deadline.
type patientBody struct {
	io.ReadCloser
	wait time.Duration
	// until sets the read deadline; the zero time removes it.
	until func(time.Time) error
	// shared is true if the deadline belongs to the connection. Later requests use the connection
	// too, and the server itself reads the rest of this body.
	shared bool

	// mu guards the fields below. The handler of a timed-out request may keep reading after the
	// request has ended.
	mu sync.Mutex
	// reading is true while a reader waits for bytes.
	reading bool
	// came is true after the whole body was read.
	came bool
	// over is set when the request has ended. Setting a deadline then panics in HTTP/2, and affects
	// another request in HTTP/1.
	over bool
}

var errOver = errors.New("reading the body: the request has been answered")

// Read implements io.Reader. It removes the deadline after each read: between two reads, the body
// may wait without limit. After the body, the server reads the connection to notice that the client
// closes it, which cancels the request.
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
	// A server without a connection, as in tests of handlers, does not wait.
	if err := b.until(until); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bounding the wait for the body: %w", err)
	}
	return nil
}

// end sets a last deadline for an incomplete body. In HTTP/1 the server reads the rest of a body,
// up to 256 KiB, before it answers, and waits for a reader that is active.
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
	// An error means that the connection has ended.
	_ = b.until(until)
}

// tooSlow returns the answer for a client whose body stopped arriving.
func tooSlow(wait time.Duration) error {
	return late(fmt.Sprintf("nothing of the body arrived for %s, and other requests are waiting: send it again", wait))
}

func late(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout, Message: message,
	}}
}
