package plane

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Request is a request as kube-apiserver logged it.
type Request struct {
	ID        string
	Verb      string // of the API: get, list, watch, create, patch, …
	URI       string // including the query
	User      string
	UserAgent string
	Source    string // client's IP address

	// The requested resource. Empty for paths like /readyz.
	Group, Version, Resource, Subresource string
	Namespace, Name                       string

	Code     int // HTTP status
	Received time.Time
	Ended    time.Time // zero while a watch is open
}

// String returns one line for a user who searches for an unexpected request.
func (r Request) String() string {
	return fmt.Sprintf("%s %-6s %d %s  (%s, %s)", r.Received.Format("15:04:05.000"), r.Verb, r.Code, r.URI, r.User, r.UserAgent)
}

// Requests are requests in the order in which they were first logged.
type Requests []Request

// String returns one line per request.
func (r Requests) String() string {
	lines := make([]string, len(r))
	for i := range r {
		lines[i] = r[i].String()
	}
	return strings.Join(lines, "\n")
}

// Where returns the requests that pass every filter.
func (r Requests) Where(filters ...Filter) Requests {
	var kept Requests
	for _, request := range r {
		if !slices.ContainsFunc(filters, func(pass Filter) bool { return !pass(request) }) {
			kept = append(kept, request)
		}
	}
	return kept
}

// Filter reports whether to keep a request.
type Filter func(Request) bool

// ByUser keeps requests of the user with this full name.
func ByUser(name string) Filter {
	return func(r Request) bool { return r.User == name }
}

// ByAgent keeps requests whose user agent has a prefix, such as "kubectl/" or "penstock".
func ByAgent(prefix string) Filter {
	return func(r Request) bool { return strings.HasPrefix(r.UserAgent, prefix) }
}

// ByVerb keeps requests with one of the verbs.
func ByVerb(verbs ...string) Filter {
	return func(r Request) bool { return slices.Contains(verbs, r.Verb) }
}

// Writes keeps requests that can change objects, including dry-runs.
func Writes() Filter {
	return ByVerb("create", "update", "patch", "delete", "deletecollection")
}

// ByResource keeps requests for one of the resources in any group: "deployments", or
// "deployments/status" for the subresource alone.
func ByResource(resources ...string) Filter {
	return func(r Request) bool {
		name := r.Resource
		if r.Subresource != "" {
			name += "/" + r.Subresource
		}
		return slices.Contains(resources, name)
	}
}

// Not keeps the requests that the filter drops.
func Not(filter Filter) Filter {
	return func(r Request) bool { return !filter(r) }
}

// auditEvent has the used fields of an event of audit.k8s.io/v1.
type auditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	UserAgent  string `json:"userAgent"`
	// SourceIPs begins with the client. A proxy would be last.
	SourceIPs []string `json:"sourceIPs"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		APIGroup    string `json:"apiGroup"`
		APIVersion  string `json:"apiVersion"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
	At       time.Time `json:"stageTimestamp"`
}

func (e auditEvent) request() Request {
	r := Request{
		ID: e.AuditID, Verb: e.Verb, URI: e.RequestURI, User: e.User.Username, UserAgent: e.UserAgent,
		Group: e.ObjectRef.APIGroup, Version: e.ObjectRef.APIVersion,
		Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name,
		Code: e.ResponseStatus.Code, Received: e.Received,
	}
	if len(e.SourceIPs) > 0 {
		r.Source = e.SourceIPs[0]
	}
	if e.Stage == "ResponseComplete" || e.Stage == "Panic" {
		r.Ended = e.At
	}
	return r
}
