//go:build integration

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/receiver"
)

// TestNotifications: receivers get all events, despite failures of receivers and of the process.
func TestNotifications(t *testing.T) {
	t.Parallel()
	const key, rotated = "0123456789abcdef", "fedcba9876543210"
	const namespace = "penstock-system"
	to := receiver.Start(t, key, rotated)
	w := start(t)
	ns := w.namespace("notified")
	halted := func(name string) draft {
		w.MustKubectl("create", "configmap", name, "--namespace="+ns)
		return revision(name, 1).Phase("all", configMap(ns, name, "x=hush-content"))
	}

	// An event that ended before the receiver existed is not sent. A condition that still lasts is
	// sent.
	w.roll(revision("before", 1).Phase("all", configMap(ns, "before", "x=hush-content")))
	w.MustKubectlInput(halted("collides").String(), "create", "-f", "-")
	w.condition("collides-1", "Stalled", "True")
	w.MustKubectlInput(to.Secret(namespace, "chat", key), "apply", "-f", "-")
	to.Await(t, "that it is connected", func(got receiver.Got) bool {
		return got.Type == "dev.penstock.Connected" && got.Taken && got.Key == key
	})
	first := to.Await(t, "a revision that waits", receiver.Of("Halted", "collides-1", true))
	if first.Data.Summary != "The rollout of revision collides-1 has halted: Collision" || first.SpecVersion != "1.0" || first.Key != key {
		t.Errorf("the event is %+v", first)
	}
	w.roll(revision("after", 1).Phase("all", configMap(ns, "after", "x=hush-content")))
	to.Await(t, "a rollout that is complete", receiver.Of("Completed", "after-1", true))

	// A receiver that was down gets the event later. The key may change meanwhile.
	to.Answer(http.StatusServiceUnavailable)
	w.roll(revision("down", 1).Phase("all", configMap(ns, "down", "x=hush-content")))
	refused := to.Await(t, "an attempt", receiver.Of("Completed", "down-1", false))
	w.warned(namespace, "chat", "NotificationFailed", "answered 503")
	w.MustKubectlInput(to.Secret(namespace, "chat", rotated), "apply", "-f", "-")
	to.Await(t, "an attempt with the new key", func(got receiver.Got) bool { return got.Key == rotated })
	to.Answer(http.StatusNoContent)
	taken := to.Await(t, "what it missed", receiver.Of("Completed", "down-1", true))
	if taken.ID != refused.ID || taken.Key != rotated {
		t.Errorf("the event has ID %s, is signed with %q, and had ID %s", taken.ID, taken.Key, refused.ID)
	}

	// The process is killed between a request and its answer. The next process sends the same event
	// again.
	to.Answer(0)
	w.roll(revision("killed", 1).Phase("all", configMap(ns, "killed", "x=hush-content")))
	unanswered := to.Await(t, "an attempt", receiver.Of("Completed", "killed-1", false))
	w.server.Kill(t)
	to.Answer(http.StatusNoContent)
	server := w.program.Serve(t, w.Cluster, w.dataDir)
	again := to.Await(t, "what the killed process sent", receiver.Of("Completed", "killed-1", true))
	if again.ID != unanswered.ID {
		t.Errorf("its id is %s, and was %s", again.ID, unanswered.ID)
	}

	// Penstock refuses some addresses and invalid Secrets.
	inside, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inside.Close() })
	go func() {
		if connection, err := inside.Accept(); err == nil {
			t.Error("Penstock connected to loopback")
			_ = connection.Close()
		}
	}()
	w.MustKubectlInput(receiver.Secret(namespace, "inside", "https://"+inside.Addr().String()+"/token-in-path", key, nil), "apply", "-f", "-")
	w.warned(namespace, "inside", "NotificationFailed", "loopback")
	w.MustKubectlInput(receiver.Secret(namespace, "plain", "http://example.com/token-in-path", key, nil), "apply", "-f", "-")
	w.warned(namespace, "plain", "NotificationFailed", "https://")
	w.MustKubectl("delete", "secret", "inside", "plain", "--namespace="+namespace)

	// Many events at once become one summary event.
	to.Answer(http.StatusServiceUnavailable)
	var burst strings.Builder
	for i := range 30 {
		fmt.Fprintf(&burst, "---\n%s\n", halted(fmt.Sprintf("storm%d", i)))
	}
	w.MustKubectlInput(burst.String(), "create", "-f", "-")
	for i := range 30 {
		w.condition(fmt.Sprintf("storm%d-1", i), "Stalled", "True")
	}
	to.Answer(http.StatusNoContent)
	many := to.Await(t, "a summary", func(got receiver.Got) bool { return got.Type == "dev.penstock.Summary" && got.Taken })
	listed := map[string]bool{}
	for _, got := range to.Got() {
		if got.Taken && got.Type == "dev.penstock.Halted" {
			listed[got.Data.Name] = true
		}
		for _, raw := range got.Data.Notifications {
			var one receiver.Got
			if err := json.Unmarshal(raw, &one); err != nil {
				t.Fatal(err)
			}
			listed[one.Data.Name] = got.Taken || listed[one.Data.Name]
		}
	}
	for i := range 30 {
		if name := fmt.Sprintf("storm%d-1", i); !listed[name] {
			to.Await(t, name, receiver.Of("Halted", name, true))
		}
	}
	if many.Data.Counts["Halted"] < 20 {
		t.Errorf("the summary counts %v", many.Data.Counts)
	}

	ids := map[string]string{}
	for _, got := range to.Got() {
		if got.Data.Name == "before-1" {
			t.Errorf("an event was sent for a rollout that ended before: %s", got.Body)
		}
		if strings.Contains(got.Body, "hush-content") || got.Key == "" {
			t.Errorf("content of an object, or a body without a signature: %s", got.Body)
		}
		if name, known := ids[got.ID]; known && name != got.Data.Name+got.Type {
			t.Errorf("%s is the id of two events: %s and %s", got.ID, name, got.Data.Name+got.Type)
		}
		ids[got.ID] = got.Data.Name + got.Type
	}
	if strings.Contains(server.Log()+w.server.Log(), "token-in-path") {
		t.Error("the log has the path of a receiver")
	}
}

// warned waits until the Secret of a receiver has a warning event.
func (w sharedPlane) warned(namespace, name, reason, says string) {
	w.t.Helper()
	found := ""
	err := poll.Until(w.t.Context(), func(context.Context) bool {
		found = w.MustKubectl("get", "events", "--namespace="+namespace, "--field-selector=involvedObject.kind=Secret,involvedObject.name="+name+",reason="+reason, "-o", "jsonpath={.items[*].message}")
		return strings.Contains(found, says)
	})
	if err != nil {
		w.t.Fatalf("Secret %s has no event %s that says %q: %q", name, reason, says, found)
	}
	if strings.Contains(found, "token-in-path") {
		w.t.Errorf("the event has the path of a receiver: %s", found)
	}
}
