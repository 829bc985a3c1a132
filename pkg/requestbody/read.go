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

// maxPreallocated is the largest buffer, in bytes, that is allocated because of an announced
// length. Buffers of this size need no share of a budget, so a body that never arrives has no
// share.
const maxPreallocated = freeBytes

// Read reads the whole body of a user's request, and increases the share as bytes arrive. If the
// body is longer than limit (0 for none), complete is false and the request gets a body with the
// same bytes. The error is the answer for an incomplete body, or for a body that exceeds the
// budget.
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
		// The server closes its own body. Closing it here as well frees the connection's buffer
		// earlier.
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

// readAll works like io.ReadAll, but reserves the memory of the buffer before the buffer grows. The
// buffer grows to four times its size, at most to the announced length. If no length was announced,
// it doubles. io.ReadAll would leave several times the body as garbage.
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

// answer returns the error for a client whose body is incomplete. It is always an error of the API,
// because the library logs every other error, for each client that disconnects.
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
