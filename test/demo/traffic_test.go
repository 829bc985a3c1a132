package main

import (
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

func TestClassify(t *testing.T) {
	watch := plane.Request{Verb: "watch", Group: "apps", Resource: "deployments"}
	renewal := plane.Request{Verb: "update", Group: "coordination.k8s.io", Resource: "leases"}
	review := plane.Request{Verb: "create", Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}
	token := plane.Request{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}
	cases := map[string]struct {
		reason    string
		requests  plane.Requests
		want      string
		offenders int
	}{
		"silence": {"none at all", nil, "none", 0},
		"idle": {
			"all have a good reason", plane.Requests{watch, renewal, renewal, review, token},
			"1 watch renewed, 2 renewals of its lease, 1 token review, 1 access review", 0,
		},
		"list":   {"a watch that was opened anew by a list is not idle", plane.Requests{{Verb: "list", Group: "apps", Resource: "deployments"}}, "1 others", 1},
		"apply":  {"a dry-run is a request too", plane.Requests{watch, {Verb: "patch", Group: "apps", Resource: "deployments"}}, "1 watch renewed, 1 others", 1},
		"status": {"a subresource is something else", plane.Requests{{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews", Subresource: "status"}}, "1 others", 1},
		"path":   {"so is what is no resource", plane.Requests{{Verb: "get", URI: "/apis"}}, "1 others", 1},
		"note":   {"a store that changes is not silent", plane.Requests{{Verb: "update", Resource: "configmaps", Name: "penstock-store"}}, "1 others", 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := classify(tc.requests)
			if got.String() != tc.want || len(got.offenders) != tc.offenders {
				t.Errorf("%s: got %q and %d offenders, want %q and %d", tc.reason, got, len(got.offenders), tc.want, tc.offenders)
			}
		})
	}
}
