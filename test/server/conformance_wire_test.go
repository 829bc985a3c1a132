//go:build integration

package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/cluster"
)

const (
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	jsonPatch      = "application/json-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// subject is the type under test.
type subject struct {
	*cluster.Cluster
	breed
	t *testing.T
	// base is the prefix of the names of its objects in this scenario.
	base string
	caller
	// inner is the server's own client, which has more rights.
	inner caller
	seen  *transcript
	names *strings.Replacer
}

// caller is a client with its address.
type caller struct {
	host   string
	client *http.Client
}

func newCaller(t *testing.T, config *rest.Config) caller {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return caller{host: config.Host, client: client}
}

func newSubject(t *testing.T, w servedHost, breed breed, base string) *subject {
	t.Helper()
	return &subject{
		Cluster: w.In(t), breed: breed, t: t, base: base, caller: newCaller(t, w.Config()), inner: newCaller(t, w.server.Loopback()),
		seen: &transcript{values: map[string]string{}}, names: breed.neutral(),
	}
}

// name returns the name of an object of this scenario. It is also valid for a revision.
func (s *subject) name(letter string) string { return s.base + "-" + letter + "-1" }

// volatile matches text that differs between any two objects.
var volatile = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|Key: \S+,|\(\d+\)|\d{4}-\d\d-\d\dT[0-9:.]+Z|current: \d+|\b\d{2,}\b`)

// note records an observation. It replaces the type's names, UIDs, times and large numbers.
func (s *subject) note(what string, format string, args ...any) {
	s.t.Helper()
	if _, twice := s.seen.values[what]; twice {
		s.t.Fatalf("%s is observed twice", what)
	}
	value := s.names.Replace(fmt.Sprintf(format, args...))
	s.seen.values[what] = volatile.ReplaceAllString(value, "N")
}

// call is a request.
type call struct {
	method string
	// name is the name of the object, with an optional subresource. It is empty for the collection.
	name string
	// query is the query without the question mark.
	query       string
	contentType string
	accept      string
	// body is a string, or a value that is encoded as JSON.
	body any
}

// reply is the answer to a request.
type reply struct {
	code     int
	warnings []string
	body     map[string]any
	raw      string
}

// send sends a request and returns the raw response.
func (s *subject) send(c call) *http.Response {
	s.t.Helper()
	var body io.Reader
	switch content := c.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(content)
	default:
		encoded, err := json.Marshal(content)
		if err != nil {
			s.t.Fatal(err)
		}
		body = bytes.NewReader(encoded)
	}
	path := s.path()
	if c.name != "" {
		path = s.path(c.name)
	}
	if c.query != "" {
		path += "?" + c.query
	}
	from := s.caller
	if s.keepsStatus && strings.HasSuffix(c.name, "/status") {
		from = s.inner
	}
	request, err := http.NewRequestWithContext(s.t.Context(), c.method, from.host+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if c.contentType == "" {
		c.contentType = "application/json"
	}
	if c.accept == "" {
		c.accept = "application/json"
	}
	request.Header.Set("Content-Type", c.contentType)
	request.Header.Set("Accept", c.accept)
	response, err := from.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	return response
}

// ask sends a request and reads the answer.
func (s *subject) ask(c call) reply {
	s.t.Helper()
	response := s.send(c)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	a := reply{code: response.StatusCode, raw: string(raw)}
	for _, warning := range response.Header.Values("Warning") {
		a.warnings = append(a.warnings, strings.TrimPrefix(warning, "299 - "))
	}
	// Bodies that are not JSON are compared as text.
	_ = json.Unmarshal(raw, &a.body)
	return a
}

// must is like ask, and fails the test on an error.
func (s *subject) must(c call) reply {
	s.t.Helper()
	a := s.ask(c)
	if a.code >= 300 {
		s.t.Fatalf("%s %s?%s: %d %s", c.method, s.path(c.name), c.query, a.code, a.raw)
	}
	return a
}

// hint records the code and reason of an answer, without its message.
func (s *subject) hint(what string, c call) {
	s.t.Helper()
	s.note(what, "%s", s.ask(c).short())
}

// answered records an answer.
func (s *subject) answered(what string, c call) reply {
	s.t.Helper()
	a := s.ask(c)
	s.note(what, "%s", a)
	return a
}

func (a reply) version() string { return fmt.Sprint(at(a.body, "metadata", "resourceVersion")) }
func (a reply) uid() string     { return fmt.Sprint(at(a.body, "metadata", "uid")) }

// String returns the code, and for a Status all fields on which a program can rely.
func (a reply) String() string {
	text := fmt.Sprintf("HTTP%d", a.code)
	if a.body["kind"] == "Status" {
		text += fmt.Sprintf(" %v %v %s", a.body["status"], a.body["reason"], withoutValues(a.body["message"]))
		if details, ok := a.body["details"].(map[string]any); ok {
			causes, _ := details["causes"].([]any)
			for _, c := range causes {
				cause := c.(map[string]any)
				cause["message"] = withoutValues(cause["message"])
			}
			// Some kinds validate metadata twice. Since 1.37 some of the host's kinds no longer
			// repeat these errors.
			if len(causes) > 0 {
				details["causes"] = slices.CompactFunc(causes, func(a, b any) bool { return reflect.DeepEqual(a, b) })
			}
			text += " details" + describe(details)
		}
	}
	if len(a.warnings) > 0 {
		text += fmt.Sprintf(" warnings%q", a.warnings)
	}
	return text
}

// whole matches an object that is printed as an invalid value.
var whole = regexp.MustCompile(`Invalid value: "(\{|map\[).*(\}|\])"`)

// withoutValues replaces whole objects in a message.
func withoutValues(message any) string {
	return whole.ReplaceAllString(fmt.Sprint(message), "Invalid value: OBJECT")
}

// short returns the code and the reason. Messages depend on the release of the library, which can
// differ between the host and ours.
func (a reply) short() string { return fmt.Sprintf("HTTP%d %v", a.code, a.body["reason"]) }

// describe prints an object with sorted keys.
func describe(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}
