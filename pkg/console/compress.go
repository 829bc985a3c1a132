package console

import (
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// minCompressed is the size of an answer, in bytes, from which it is worth compressing. A stream
// is compressed however small its messages are.
const minCompressed = 1 << 10

// compressed sends the answers of a handler as gzip to who accepts that. Content that the handler
// flushes arrives at once. Each write is compressed for itself: between two messages of a stream
// nothing is kept, neither memory (a stream that remembers takes about a megabyte, and some
// hundred are open at a time) nor earlier text, which a later one could be compared with by its
// length.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.StatelessCompression), gzhttp.EnableZstd(false))
	if err != nil {
		return nil, fmt.Errorf("compressing answers: %w", err)
	}
	return wrap(next), nil
}
