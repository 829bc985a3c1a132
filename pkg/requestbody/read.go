package requestbody

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxPreallocated bounds the memory that is taken at a client's word for how long their
// body will be, in bytes: as much as needs no share of a budget, so that a body of which
// nothing comes has none.
const maxPreallocated = freeBytes

// Read reads the whole body of a user's request, and increases the share as bytes arrive. If the
// body is longer than limit (0 for none), complete is false, and the request gets a body that
// yields the same bytes again. The error is the answer for an incomplete body, or for a body
// without room.
func Read(req *http.Request, limit int64, share *Share) (body []byte, complete bool, err error) {
	done, err := share.budget.begin(req.Context(), share.user)
	if err != nil {
		return nil, false, err
	}
	defer done()
	original := req.Body
	var source io.Reader = original
	if limit > 0 {
		source = io.LimitReader(original, limit+1)
	}
	body, err = readAll(source, req.ContentLength, share)
	switch {
	case err != nil:
		return nil, false, answer(err)
	case limit <= 0 || int64(len(body)) <= limit:
		// The server drains and closes what it gave us itself; closing here
		// gives the connection's buffer back early.
		_ = original.Close()
		share.free = share.budget != nil && int64(len(body)) <= share.budget.free
		return body, true, nil
	}
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), original), original}
	return nil, false, nil
}

// readAll is io.ReadAll for who pays for the buffer before it grows. It grows to four times
// what is here, to the announced length at last, or to twice of it when none was announced:
// as io.ReadAll does it, it would leave several times the body as garbage.
func readAll(source io.Reader, announced int64, share *Share) ([]byte, error) {
	body := make([]byte, 0, min(max(announced, 0), maxPreallocated)+bytes.MinRead)
	for {
		if len(body) == cap(body) {
			size := 2 * int64(cap(body))
			if end := announced + bytes.MinRead; end > int64(len(body)) {
				size = min(2*size, end)
			}
			if err := share.read(size); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size), body...)
		}
		n, err := source.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// answer returns the error for a client whose body could not be read to its end, if it is still
// there. It has to be an answer of the API: of other errors the library writes lines into the log,
// for everybody who leaves.
func answer(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return late("the body did not arrive in time")
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, errOver) {
		return apierrors.NewTimeoutError("the request ended before its body was here", 0)
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the body of the request did not arrive completely: %s", err))
}
