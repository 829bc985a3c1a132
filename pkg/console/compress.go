package console

import (
	"fmt"
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

// minCompressed is the smallest size, in bytes, of a compressed answer. Streams are always
// compressed.
const minCompressed = 1 << 10

// compressed sends the answers of a handler as gzip to clients that accept gzip. Flushed content
// arrives at once. Each write is compressed separately. A stream with memory would take about a
// megabyte, and some hundred streams are open at a time. Without earlier text in memory, the length
// of a message also reveals nothing about earlier messages.
func compressed(next http.Handler) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(gzhttp.MinSize(minCompressed), gzhttp.CompressionLevel(gzip.StatelessCompression), gzhttp.EnableZstd(false))
	if err != nil {
		return nil, fmt.Errorf("compressing answers: %w", err)
	}
	return wrap(next), nil
}
