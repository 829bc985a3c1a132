package host

import (
	"maps"
	"net/http"
	"sync"
)

// Counter counts requests as they are sent. The zero value is ready.
type Counter struct {
	mu      sync.Mutex
	methods map[string]int64
}

// Wrap returns a transport that counts and passes on (see rest.Config.Wrap).
func (c *Counter) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
		c.mu.Lock()
		if c.methods == nil {
			c.methods = map[string]int64{}
		}
		c.methods[request.Method]++
		c.mu.Unlock()
		return next.RoundTrip(request)
	})
}

// Total returns the number of requests so far.
func (c *Counter) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var total int64
	for _, n := range c.methods {
		total += n
	}
	return total
}

// ByMethod returns the number of requests so far by HTTP method.
func (c *Counter) ByMethod() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.methods)
}
