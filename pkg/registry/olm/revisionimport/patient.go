package revisionimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// patient reads a body whose sender may be slow, and gives up when nothing comes for
// some time, or when the time of the request is over: it has its turn, and others wait.
type patient struct {
	ctx  context.Context
	body io.Reader
	wait time.Duration
	// until has reads of the body fail at a time; the zero time never.
	until func(time.Time) error
}

// newPatient returns a reader of the body of a request.
func newPatient(w http.ResponseWriter, req *http.Request, wait time.Duration) *patient {
	return &patient{ctx: req.Context(), body: req.Body, wait: wait, until: http.NewResponseController(w).SetReadDeadline}
}

// Read implements io.Reader. The deadline is taken back each time: behind the end of
// the body the connection is read for the end of the client, which ends the request.
func (p *patient) Read(into []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, tooSlow("the archive did not come in the time that a request has")
	}
	until := time.Now().Add(p.wait)
	if end, ends := p.ctx.Deadline(); ends && end.Before(until) {
		until = end
	}
	if err := p.until(until); err != nil {
		return 0, fmt.Errorf("bounding the wait for the archive: %w", err)
	}
	n, err := p.body.Read(into)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, tooSlow(fmt.Sprintf("nothing of the archive came for %s, and others wait to import: send it again", p.wait))
	}
	if failed := p.until(time.Time{}); failed != nil && err == nil {
		err = fmt.Errorf("bounding the wait for the archive: %w", failed)
	}
	return n, err
}

// tooSlow is the answer to who keeps others waiting.
func tooSlow(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout, Message: message,
	}}
}
