package wait_test

import (
	"testing"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/wait"
)

func TestExpressions(t *testing.T) {
	var expressions wait.Expressions
	ready := []profile.Wait{{Expression: "self.status.ready == true", Message: "waiting for the knob"}}
	check(t, "nothing is waited for", expressions.For(t.Context(), nil, nil), wait.Done, "")
	check(t, "not seen yet", expressions.For(t.Context(), ready, nil), wait.Waiting, "to see its state")
	check(t, "no status yet", expressions.For(t.Context(), ready, object(map[string]any{})), wait.Waiting, "waiting for the knob: the object has no status yet")
	check(t, "not healthy", expressions.For(t.Context(), ready, object(map[string]any{"status": map[string]any{"ready": false}})), wait.Waiting, "waiting for the knob")
	check(t, "healthy", expressions.For(t.Context(), ready, object(map[string]any{"status": map[string]any{"ready": true}})), wait.Done, "")
	both := append(ready, profile.Wait{Expression: "self.status.count >= 3"})
	check(t, "all of them count", expressions.For(t.Context(), both, object(map[string]any{"status": map[string]any{"ready": true, "count": int64(2)}})), wait.Waiting, "waiting for self.status.count >= 3")
	if err := expressions.Check(both); err != nil {
		t.Error(err)
	}
	if err := expressions.Check([]profile.Wait{{Expression: "self.status.count"}, {Expression: "self."}}); err == nil {
		t.Error("an expression that is no bool is accepted")
	}
}
