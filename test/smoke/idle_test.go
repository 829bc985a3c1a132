//go:build integration

package smoke_test

import (
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// settled rolls out a revision. The returned check fails if Penstock has sent a request about its
// objects since.
func (s scenario) settled() func(*testing.T) {
	s.t.Helper()
	s.roll(s.revision(1).Phase("all", s.configMap("settings", "x=1"), s.secret("token", "password=hunter2"), s.deployment("web", "example.com/web:v1")))
	s.Condition("cer/unattended-1", "Ready", "True")
	mark := s.cluster.Audit().Mark()
	about := func(r plane.Request) bool { return r.Namespace == s.name }
	return func(t *testing.T) {
		audit := s.cluster.In(t).Audit()
		if requests := audit.Since(mark, plane.ByAgent("penstock/"), about, plane.Not(plane.ByVerb("watch"))); len(requests) > 0 {
			t.Errorf("requests for unchanged objects:\n%s", requests)
		}
		if requests := audit.Since(0, plane.ByAgent("penstock/"), about, plane.Writes()); len(requests) == 0 {
			t.Error("not even the rollout is in the audit log: the test sees nothing")
		}
	}
}
