//go:build integration

package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/penstock-project/penstock/test/framework/poll"
)

func watchManners() map[string]manner {
	return map[string]manner{
		"Watch":     {do: watching},
		"WatchList": {do: watchList},
		"WatchAs":   {do: watchAs, deviations: []deviation{noProtobuf("nonsense")}},
	}
}

// watcher is a watch in a given format.
type watcher struct {
	s      *subject
	events chan map[string]any
	close  func() error
}

// watch starts a watch of the scenario's objects.
func (s *subject) watch(accept string, query ...string) *watcher {
	s.t.Helper()
	query = append(query, "watch=true", "labelSelector=scenario%3D"+s.base)
	response := s.send(call{method: http.MethodGet, query: strings.Join(query, "&"), accept: accept})
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("watching: %s", response.Status)
	}
	w := &watcher{s: s, events: make(chan map[string]any, 100), close: response.Body.Close}
	go func() {
		defer close(w.events)
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var event map[string]any
			if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
				return
			}
			w.events <- event
		}
	}()
	return w
}

// next returns the next event, or nil at the end.
func (w *watcher) next() map[string]any {
	w.s.t.Helper()
	select {
	case event := <-w.events:
		return event
	case <-time.After(poll.Patience):
		w.s.t.Fatal("the watch sent no event")
		return nil
	}
}

// describe returns an event's type and object as text.
func (w *watcher) describe(event map[string]any) string {
	if event == nil {
		return "end"
	}
	object, _ := event["object"].(map[string]any)
	if event["type"] == "ERROR" {
		return fmt.Sprintf("ERROR %s", reply{body: object})
	}
	if event["type"] == "BOOKMARK" {
		return fmt.Sprintf("BOOKMARK %v, initial events end %v", object["kind"], at(object, "metadata", "annotations", "k8s.io/initial-events-end"))
	}
	return fmt.Sprintf("%v %v %v", event["type"], object["kind"], strings.TrimPrefix(fmt.Sprint(at(object, "metadata", "name")), w.s.base+"-"))
}

// take returns the next n events. It skips periodic bookmarks, but not the bookmark at the end of
// the initial events.
func (w *watcher) take(n int) string {
	w.s.t.Helper()
	var all []string
	for len(all) < n {
		event := w.next()
		if event["type"] == "BOOKMARK" && at(event, "object", "metadata", "annotations", "k8s.io/initial-events-end") == nil {
			continue
		}
		all = append(all, w.describe(event))
	}
	return strings.Join(all, "; ")
}

// watching tests a watch after a list, and the effect of a selector on changed objects.
func watching(s *subject) {
	s.several("a b")
	w := s.watch("", "resourceVersion="+s.list().version())
	defer w.close()
	s.several("c")
	s.turn("a", 2)
	s.judge("a", 1)
	s.patch("b", map[string]any{"metadata": map[string]any{"labels": map[string]any{"scenario": nil}}})
	s.patch("b", map[string]any{"metadata": map[string]any{"labels": map[string]any{"scenario": s.base}}})
	s.must(call{method: http.MethodDelete, name: s.name("a")})
	s.release("a")
	s.note("events", "%s", w.take(7))
	// Without a version the watch begins with the current objects.
	present := s.watch("")
	defer present.close()
	s.note("from the present", "%s", present.take(2))
	short := s.watch("", "resourceVersion="+s.list().version(), "timeoutSeconds=1")
	defer short.close()
	s.note("ends in time", "%s", short.take(1))
	s.note("nonsense timeout", "%s", s.list("watch=true", "timeoutSeconds=never"))
	one := s.watch("", "fieldSelector="+url.QueryEscape("metadata.name="+s.name("c")))
	defer one.close()
	s.note("one", "%s", one.take(1))
}

// watchList starts a watch as informers do.
func watchList(s *subject) {
	s.several("a b c")
	initial := []string{"sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"}
	w := s.watch("", append(slices.Clone(initial), "allowWatchBookmarks=true")...)
	defer w.close()
	s.note("initial events", "%s", w.take(3))
	bookmark := w.next()
	s.note("their end", "%s, version %t", w.describe(bookmark), at(bookmark, "object", "metadata", "resourceVersion") != nil)
	s.several("d")
	s.turn("b", 2)
	s.must(call{method: http.MethodDelete, name: s.name("c")})
	s.note("and on", "%s", w.take(3))

	// From an earlier version, as after a reconnect.
	again := s.watch("", append(slices.Clone(initial), "allowWatchBookmarks=true", "resourceVersion="+s.get("d").version())...)
	defer again.close()
	s.note("again", "%s", again.take(5))
	none := s.watch("", "sendInitialEvents=false", "resourceVersionMatch=NotOlderThan", "resourceVersion="+s.get("c").version(), "allowWatchBookmarks=true")
	defer none.close()
	s.turn("b", 3)
	s.note("none", "%s", none.take(1))

	for what, query := range map[string][]string{
		"without match": {"sendInitialEvents=true"},
		"exact":         {"sendInitialEvents=true", "resourceVersionMatch=Exact", "resourceVersion=1"},
		"match only":    {"resourceVersionMatch=NotOlderThan"},
		"with a limit":  append(slices.Clone(initial), "limit=1"),
		"nonsense":      {"sendInitialEvents=nonsense"},
		"with a token":  append(slices.Clone(initial), "continue=x"),
	} {
		s.note(what, "%s", s.watchOnce(query...))
	}
}

// watchOnce returns the first event of a watch.
func (s *subject) watchOnce(query ...string) string {
	s.t.Helper()
	query = append(query, "watch=true", "labelSelector=scenario%3D"+s.base, "timeoutSeconds=1")
	a := s.ask(call{method: http.MethodGet, query: strings.Join(query, "&")})
	if a.code != http.StatusOK {
		return a.String()
	}
	first, _, _ := strings.Cut(a.raw, "\n")
	var event map[string]any
	if first == "" || json.Unmarshal([]byte(first), &event) != nil {
		return "HTTP200 and nothing"
	}
	return "HTTP200 " + (&watcher{s: s}).describe(event)
}

// watchAs tests metadata and tables in a watch.
func watchAs(s *subject) {
	s.several("a")
	initial := []string{"sendInitialEvents=true", "resourceVersionMatch=NotOlderThan", "allowWatchBookmarks=true"}
	partial := s.watch(metadataAccept, initial...)
	defer partial.close()
	s.note("metadata", "%s", partial.take(2))
	table := s.watch(tableAccept, initial...)
	defer table.close()
	for i := range 2 {
		event := table.next()
		object, _ := event["object"].(map[string]any)
		rows, _ := object["rows"].([]any)
		s.note(fmt.Sprintf("table %d", i), "%v %v, %d rows, columns %t, initial events end %v", event["type"], object["kind"], len(rows),
			object["columnDefinitions"] != nil, at(rows[0].(map[string]any), "object", "metadata", "annotations", "k8s.io/initial-events-end"))
	}
	s.turn("a", 2)
	s.note("metadata, then", "%s", partial.take(1))
	object, _ := table.next()["object"].(map[string]any)
	s.note("table, then", "%v, columns %t", object["kind"], object["columnDefinitions"] != nil)
	s.note("nonsense", "%s", s.ask(call{method: http.MethodGet, query: "watch=true", accept: "application/json;as=Nonsense;v=v1;g=meta.k8s.io"}))
}
