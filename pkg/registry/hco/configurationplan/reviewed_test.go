package configurationplan

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestNoteReviewed: the reviewed hash is read from each encoding that the endpoint accepts. The
// endpoint gets the same body.
func TestNoteReviewed(t *testing.T) {
	const (
		merge = "application/merge-patch+json"
		patch = "application/json-patch+json"
		apply = "application/apply-patch+yaml"
	)
	for name, c := range map[string]struct {
		reason, contentType, body string
		other                     func(*request.RequestInfo)
		want                      Reviewed
	}{
		"merge patch":      {"the hash", merge, `{"spec":{"action":"Apply","approvedPlanHash":"h"}}`, nil, Reviewed{PlanHash: "h"}},
		"resourceVersion":  {"what was read", merge, `{"metadata":{"resourceVersion":"7"},"spec":{"action":"Apply"}}`, nil, Reviewed{ResourceVersion: "7"}},
		"nothing":          {"an Apply alone says nothing", merge, `{"spec":{"action":"Apply"}}`, nil, Reviewed{}},
		"another case":     {"the endpoint does not take it for the field", merge, `{"spec":{"ApprovedPlanHash":"h"}}`, nil, Reviewed{}},
		"another type":     {"the endpoint refuses it", merge, `{"spec":{"approvedPlanHash":7}}`, nil, Reviewed{}},
		"status in merge":  {"a patch of status tests nothing", merge, `{"status":{"planHash":"h"}}`, nil, Reviewed{}},
		"strategic":        {"as a merge patch", "application/strategic-merge-patch+json", `{"spec":{"approvedPlanHash":"h"}}`, nil, Reviewed{PlanHash: "h"}},
		"apply":            {"as YAML", apply, "spec:\n  action: Apply\n  approvedPlanHash: h\n", nil, Reviewed{PlanHash: "h"}},
		"PUT":              {"as JSON without a type", "", `{"metadata":{"resourceVersion":"7"},"spec":{"approvedPlanHash":"h"}}`, nil, Reviewed{"h", "7"}},
		"PUT of YAML":      {"as YAML", "application/yaml", "metadata: {resourceVersion: '7'}", nil, Reviewed{ResourceVersion: "7"}},
		"JSON patch, test": {"it fails on any other plan", patch, `[{"op":"test","path":"/status/planHash","value":"h"},{"op":"replace","path":"/spec/action","value":"Apply"}]`, nil, Reviewed{PlanHash: "h"}},
		"JSON patch":       {"both fields", patch, `[{"op":"add","path":"/spec/approvedPlanHash","value":"h"},{"op":"test","path":"/metadata/resourceVersion","value":"7"}]`, nil, Reviewed{"h", "7"}},
		"JSON patch, gone": {"what is removed is not said", patch, `[{"op":"remove","path":"/spec/approvedPlanHash"}]`, nil, Reviewed{}},
		"JSON patch, else": {"not a list", patch, `{"op":"test"}`, nil, Reviewed{}},
		"no text":          {"the endpoint refuses it", merge, `{"spec":`, nil, Reviewed{}},
		"long":             {"nobody looks through it", merge, `{"spec":{"approvedPlanHash":"h"},"x":"` + strings.Repeat("x", maxReviewedBytes) + `"}`, nil, Reviewed{}},
		"status":           {"it approves nothing", merge, `{"spec":{"approvedPlanHash":"h"}}`, func(i *request.RequestInfo) { i.Subresource = "status" }, Reviewed{}},
		"another resource": {"it is not ours", merge, `{"spec":{"approvedPlanHash":"h"}}`, func(i *request.RequestInfo) { i.Resource = "configurationprofiles" }, Reviewed{}},
	} {
		t.Run(name, func(t *testing.T) {
			info := &request.RequestInfo{IsResourceRequest: true, APIGroup: "hco.kubevirt.io", Resource: "configurationplans", Verb: "patch"}
			if c.other != nil {
				c.other(info)
			}
			req := httptest.NewRequest(http.MethodPatch, "/", strings.NewReader(c.body))
			req.Header.Set("Content-Type", c.contentType)
			req = req.WithContext(request.WithRequestInfo(req.Context(), info))
			NoteReviewed(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
				if diff := cmp.Diff(c.want, reviewedFrom(req.Context())); diff != "" {
					t.Errorf("%s (-want +got):\n%s", c.reason, diff)
				}
				if body, err := io.ReadAll(req.Body); err != nil || string(body) != c.body {
					t.Errorf("the endpoint gets %d bytes, %v; want the %d that came", len(body), err, len(c.body))
				}
			})).ServeHTTP(httptest.NewRecorder(), req)
		})
	}
}
