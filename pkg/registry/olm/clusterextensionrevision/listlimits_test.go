package clusterextensionrevision

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/requestbody"
)

func elements(n int, element string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = strings.ReplaceAll(element, "#", fmt.Sprint(i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func operations(n int, operation string) string { return elements(n, operation) }

// TestAmounts: a list with too many elements is refused before the endpoint merges it, in every
// encoding. The answer names the list, its size and the limit. Lists within the limit pass.
func TestAmounts(t *testing.T) {
	const (
		create, merge, apply, strategic, patch = "create", "application/merge-patch+json", "application/apply-patch+yaml", "application/strategic-merge-patch+json", "application/json-patch+json"
		phase                                  = `{"name":"p#"}`
		add                                    = `{"op":"add","path":"/spec/phases/-","value":{"name":"p#"}}`
	)
	for name, tc := range map[string]struct {
		reason, form, body string
		// want is part of the error. If it is empty, the endpoint gets the request.
		want string
		// subresource, group and resource are those of another kind.
		subresource, group, resource string
	}{
		"Phases":      {reason: "a new revision", form: create, body: `{"spec":{"phases":` + elements(65, phase) + `}}`, want: "spec.phases: Too many: 65"},
		"MostPhases":  {reason: "as many as allowed", form: create, body: `{"spec":{"phases":` + elements(64, phase) + `}}`},
		"Merge":       {reason: "a merge patch", form: merge, body: `{"spec":{"phases":` + elements(20_000, phase) + `}}`, want: "spec.phases: Too many: 20000"},
		"Strategic":   {reason: "a strategic one", form: strategic, body: `{"spec":{"phases":` + elements(65, phase) + `}}`, want: "spec.phases: Too many"},
		"Order":       {reason: "which has directives for lists", form: strategic, body: `{"spec":{"$setElementOrder/phases":` + elements(65, phase) + `}}`, want: "spec.phases: Too many"},
		"Delete":      {reason: "of several sorts", form: strategic, body: `{"metadata":{"$deleteFromPrimitiveList/finalizers":` + elements(257, `"a/#"`) + `}}`, want: "metadata.finalizers: Too many"},
		"Apply":       {reason: "server-side apply", form: apply, body: `{"spec":{"phases":` + elements(8000, phase) + `}}`, want: "spec.phases: Too many: 8000"},
		"YAML":        {reason: "in YAML", form: apply, body: "spec:\n  phases:\n" + strings.Repeat("  - name: p\n", 65), want: "spec.phases: Too many"},
		"Duplicate":   {reason: "a body with a mistake that the endpoint forgives", form: merge, body: `{"a":1,"a":2,"spec":{"phases":` + elements(65, phase) + `}}`, want: "spec.phases: Too many"},
		"Objects":     {reason: "over all phases", form: create, body: `{"spec":{"phases":` + elements(41, `{"name":"p#","objects":`+elements(100, `{"name":"o"}`)+`}`) + `}}`, want: "spec.phases.objects: Too many: 4100"},
		"Probes":      {reason: "probes", form: create, body: `{"spec":{"progressionProbes":` + elements(65, `{}`) + `}}`, want: "spec.progressionProbes: Too many"},
		"Assertions":  {reason: "over all probes", form: create, body: `{"spec":{"progressionProbes":` + elements(3, `{"assertions":`+elements(100, `{"cel":{"expression":"true"}}`)+`}`) + `}}`, want: "spec.progressionProbes.assertions: Too many: 300"},
		"Yield":       {reason: "yield rules", form: create, body: `{"spec":{"yield":` + elements(65, `{}`) + `}}`, want: "spec.yield: Too many"},
		"Owners":      {reason: "owner references are merged by uid", form: merge, body: `{"metadata":{"ownerReferences":` + elements(257, `{"uid":"#"}`) + `}}`, want: "metadata.ownerReferences: Too many"},
		"Status":      {reason: "status is decoded and merged before anybody is refused to write it", form: apply, subresource: "status", body: `{"status":{"phases":` + elements(257, phase) + `}}`, want: "status.phases: Too many"},
		"Plan":        {reason: "plans have lists as well", form: apply, group: hco.GroupName, resource: "configurationplans", body: `{"status":{"items":` + elements(257, `{"name":"#"}`) + `}}`, want: `ConfigurationPlan.hco.kubevirt.io "e-1" is invalid: status.items: Too many`},
		"Others":      {reason: "what is not ours is not looked at", form: merge, group: "example.com", resource: "phases", body: `{"spec":{"phases":` + elements(65, phase) + `}}`},
		"Shape":       {reason: "another shape is the endpoint's to complain about", form: merge, body: `{"spec":{"phases":{"a":` + elements(65, phase) + `}},"status":[1]}`},
		"PatchValue":  {reason: "the value of a JSON patch", form: patch, body: `[{"op":"replace","path":"/spec","value":{"phases":` + elements(65, phase) + `}}]`, want: "spec.phases: Too many"},
		"PatchRoot":   {reason: "of all", form: patch, body: `[{"op":"add","path":"","value":{"spec":{"phases":` + elements(65, phase) + `}}}]`, want: "spec.phases: Too many"},
		"PatchAdds":   {reason: "an element with each operation", form: patch, body: operations(65, add), want: "spec.phases: Too many: 65"},
		"PatchFew":    {reason: "a few are no harm", form: patch, body: operations(64, add)},
		"PatchPlaces": {reason: "at places that count from the end", form: patch, body: operations(65, `{"op":"add","path":"/spec/phases/-1","value":{"name":"p#"}}`), want: "spec.phases: Too many"},
		"PatchPrefix": {reason: "with a pointer of which a part is ignored", form: patch, body: operations(65, `{"op":"add","path":"x/spec/phases/+0","value":{}}`), want: "spec.phases: Too many"},
		"PatchWithin": {reason: "within an element", form: patch, body: operations(65, `{"op":"replace","path":"/spec/phases/0/name","value":"p"}`)},
		"PatchCopy":   {reason: "what is prepared elsewhere", form: patch, body: `[{"op":"move","from":"/x","path":"/spec/phases"}]`, want: "add or replace it by value"},
		"PatchCopy2":  {reason: "with what is around it", form: patch, body: `[{"op":"copy","from":"/x","path":"/spec"}]`, want: "add or replace it by value"},
		"PatchLabel":  {reason: "copies of anything else are as they were", form: patch, body: operations(300, `{"op":"copy","from":"/metadata/labels/a","path":"/metadata/labels/b"}`)},
		"PatchTest":   {reason: "tests bring nothing", form: patch, body: operations(300, `{"op":"test","path":"/spec/phases/0","value":{"name":"p"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			req := requestFor("PATCH", "patch", "e-1", tc.form, tc.body)
			if tc.form == create {
				req = requestFor("POST", "create", "e-1", "application/json", tc.body)
			}
			info, _ := request.RequestInfoFrom(req.Context())
			info.Subresource = tc.subresource
			if tc.group != "" {
				info.APIGroup, info.Resource = tc.group, tc.resource
			}
			var got received
			answer := httptest.NewRecorder()
			filterFor(requestbody.NewBudget(requestbody.DefaultBudget), 64<<20, &got).ServeHTTP(answer, req)
			switch {
			case tc.want == "" && (answer.Code != http.StatusOK || got.body == ""):
				t.Errorf("%s: status %d: %s", tc.reason, answer.Code, answer.Body)
			case tc.want != "" && (answer.Code != http.StatusUnprocessableEntity || got.body != ""):
				t.Errorf("%s: status %d, the endpoint got %d bytes", tc.reason, answer.Code, len(got.body))
			case tc.want != "" && !strings.Contains(strings.ReplaceAll(answer.Body.String(), `\"`, `"`), tc.want):
				t.Errorf("%s: %s, want %q", tc.reason, answer.Body, tc.want)
			}
		})
	}
}
