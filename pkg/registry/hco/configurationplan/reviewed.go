package configurationplan

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco"
)

// maxReviewedBytes bounds the bodies that are searched for the reviewed plan. A plan has a few KB.
const maxReviewedBytes = 1 << 20

// Reviewed identifies the plan that the author of a write has read. Its values are from the body of
// the request. The patched object has the stored hash and resourceVersion even if the patch names
// neither.
type Reviewed struct {
	// PlanHash is spec.approvedPlanHash, or a test of status.planHash in a JSON patch.
	PlanHash string
	// ResourceVersion is metadata.resourceVersion of the body.
	ResourceVersion string
}

type reviewedKey struct{}

// WithReviewed returns a context with the plan that the author of a write has read.
func WithReviewed(ctx context.Context, reviewed Reviewed) context.Context {
	return context.WithValue(ctx, reviewedKey{}, reviewed)
}

func reviewedFrom(ctx context.Context) Reviewed {
	reviewed, _ := ctx.Value(reviewedKey{}).(Reviewed)
	return reviewed
}

// NoteReviewed is a handler that adds the reviewed plan of a write to its context (see Reviewed).
// It refuses nothing and changes no body. An unreadable body adds nothing.
//
// It must run after the handlers that bound bodies.
func NoteReviewed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if info, ok := request.RequestInfoFrom(req.Context()); ok && updatesPlan(info) && req.Body != nil {
			req = req.WithContext(WithReviewed(req.Context(), reviewedIn(req)))
		}
		next.ServeHTTP(w, req)
	})
}

func updatesPlan(info *request.RequestInfo) bool {
	return info.IsResourceRequest && info.APIGroup == hco.GroupName && info.Resource == resource && info.Subresource == "" &&
		(info.Verb == "update" || info.Verb == "patch")
}

// reviewedIn reads the body of a request, and replaces it by a body with the same bytes.
func reviewedIn(req *http.Request) Reviewed {
	original := req.Body
	body, err := io.ReadAll(io.LimitReader(original, maxReviewedBytes+1))
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), original), original}
	if err != nil || len(body) > maxReviewedBytes {
		return Reviewed{}
	}
	mediaType, _, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil {
		mediaType = runtime.ContentTypeJSON
	}
	switch mediaType {
	case string(types.JSONPatchType):
		return reviewedInPatch(body)
	case string(types.ApplyYAMLPatchType), runtime.ContentTypeYAML:
		if body, err = yaml.YAMLToJSON(body); err != nil {
			return Reviewed{}
		}
	}
	var said struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Spec struct {
			ApprovedPlanHash string `json:"approvedPlanHash"`
		} `json:"spec"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &said); err != nil {
		return Reviewed{}
	}
	return Reviewed{PlanHash: said.Spec.ApprovedPlanHash, ResourceVersion: said.Metadata.ResourceVersion}
}

// reviewedInPatch works like reviewedIn, for the operations of a JSON patch.
func reviewedInPatch(body []byte) Reviewed {
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &operations); err != nil {
		return Reviewed{}
	}
	var said Reviewed
	for _, operation := range operations {
		value, _ := operation.Value.(string)
		sets := operation.Op == "add" || operation.Op == "replace"
		switch {
		case operation.Path == "/metadata/resourceVersion" && (sets || operation.Op == "test"):
			said.ResourceVersion = value
		case operation.Path == "/spec/approvedPlanHash" && sets, operation.Path == "/status/planHash" && operation.Op == "test":
			said.PlanHash = value
		}
	}
	return said
}
