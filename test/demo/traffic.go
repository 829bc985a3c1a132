package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// harmless returns the kinds of requests that an idle Penstock may send, in the order of the
// report.
func harmless() []trafficKind {
	is := func(verb, group, resource string) plane.Filter {
		return func(r plane.Request) bool {
			return r.Verb == verb && r.Group == group && r.Resource == resource && r.Subresource == ""
		}
	}
	return []trafficKind{
		{noun: "watch renewed", plural: "watches renewed", filter: plane.ByVerb("watch")},
		{noun: "read of its lease", plural: "reads of its lease", filter: is("get", "coordination.k8s.io", "leases")},
		{noun: "renewal of its lease", plural: "renewals of its lease", filter: is("update", "coordination.k8s.io", "leases")},
		// kube-apiserver requests health, discovery and OpenAPI from Penstock. Penstock asks
		// kube-apiserver for the identity and the rights of that client.
		{noun: "token review", plural: "token reviews", filter: is("create", "authentication.k8s.io", "tokenreviews")},
		{noun: "access review", plural: "access reviews", filter: is("create", "authorization.k8s.io", "subjectaccessreviews")},
	}
}

// trafficKind is a kind of expected requests.
type trafficKind struct {
	noun, plural string
	filter       plane.Filter
}

// traffic counts requests by kind.
type traffic struct {
	// counts are in the order of harmless.
	counts []int
	// offenders are unexpected requests.
	offenders plane.Requests
}

func classify(requests plane.Requests) traffic {
	known := harmless()
	t := traffic{counts: make([]int, len(known))}
	for _, request := range requests {
		i := slices.IndexFunc(known, func(k trafficKind) bool { return k.filter(request) })
		if i < 0 {
			t.offenders = append(t.offenders, request)
		} else {
			t.counts[i]++
		}
	}
	return t
}

// String returns text such as "4 watches renewed, 30 renewals of its lease".
func (t traffic) String() string {
	var parts []string
	for i, kind := range harmless() {
		switch t.counts[i] {
		case 0:
		case 1:
			parts = append(parts, "1 "+kind.noun)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", t.counts[i], kind.plural))
		}
	}
	if len(t.offenders) > 0 {
		parts = append(parts, fmt.Sprintf("%d others", len(t.offenders)))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
