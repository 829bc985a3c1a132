package cluster

import (
	"context"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// Audit counts requests exactly:
//
//	mark := c.Audit().Mark()
//	…
//	got := c.Audit().Since(mark, plane.ByAgent("penstock"), plane.Writes())
//	if len(got) != 0 { t.Errorf("unexpected requests:\n%s", got) }
type Audit struct {
	t     testing.TB
	audit *plane.Audit
}

// Mark returns the current end of the log, after all answered requests.
func (a *Audit) Mark() plane.Mark {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	mark, err := a.audit.Mark(ctx)
	if err != nil {
		a.t.Fatalf("cluster: %v", err)
	}
	return mark
}

// Since returns the requests after a mark (all requests for the zero Mark) that pass every filter.
// Requests are logged when they are answered, watches when they begin.
func (a *Audit) Since(mark plane.Mark, filters ...plane.Filter) plane.Requests {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	requests, err := a.audit.Since(ctx, mark, filters...)
	if err != nil {
		a.t.Fatalf("cluster: %v", err)
	}
	return requests
}
