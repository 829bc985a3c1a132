package targetclient

import (
	"maps"
	"net/http"
	"sync"
)

// Request has the labels of a counted request.
type Request struct {
	// Verb as in RBAC: get, list, watch, create, update, patch or delete.
	Verb string
	// Reason is the purpose of the request.
	Reason Reason
}

// Counter counts sent requests. The zero value is ready to use.
type Counter struct {
	mu       sync.Mutex
	methods  map[string]int64
	requests map[Request]int64
}

// Wrap returns a transport that counts requests (see rest.Config.Wrap). The context of a request
// has its reason (see Because); the default reason is Discovery.
func (c *Counter) Wrap(next http.RoundTripper) http.RoundTripper {
	return c.WrapFor(Discovery)(next)
}

// WrapFor is Wrap with another default reason.
func (c *Counter) WrapFor(usual Reason) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripperFunc(func(request *http.Request) (*http.Response, error) {
			reason, ok := reasonOf(request.Context())
			if !ok {
				reason = usual
			}
			c.count(request.Method, Request{Verb: verb(request, reason), Reason: reason})
			return next.RoundTrip(request)
		})
	}
}

func (c *Counter) count(method string, request Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.methods == nil {
		c.methods, c.requests = map[string]int64{}, map[Request]int64{}
	}
	c.methods[method]++
	c.requests[request]++
}

// verb returns the RBAC verb of a request. Some reasons always read lists.
func verb(request *http.Request, reason Reason) string {
	switch request.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	switch {
	case request.URL.Query().Get("watch") == "true", request.URL.Query().Get("watch") == "1":
		return "watch"
	case reason == Guard, reason == Explain, reason == Watch, reason == SelfTest:
		return "list"
	default:
		return "get"
	}
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

// Requests returns the number of requests so far by verb and reason.
func (c *Counter) Requests() map[Request]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}

// Counter returns the counter of the client's requests, which other clients may share.
func (c *Client) Counter() *Counter { return c.counter }
