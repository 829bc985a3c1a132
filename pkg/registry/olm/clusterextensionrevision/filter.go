package clusterextensionrevision

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/requestbody"
)

// FilterDeps are the dependencies of WithBodies.
type FilterDeps struct {
	// Digester computes digests of manifests. It must be the digester of NewStorage.
	Digester manifest.Digester
	// Serializer writes the answer when a body takes too much memory.
	Serializer runtime.NegotiatedSerializer
	// Budget bounds the memory of all bodies; nil is no bounds.
	Budget *requestbody.Budget
	// MaxBodyBytes is the server's MaxRequestBodyBytes; 0 is no limit.
	MaxBodyBytes int64
	// Stored returns a stored revision, like Storage.Stored. Only requests call it, so it may be
	// set after the handler is created.
	Stored func(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
	// Authorizer checks whether callers may know a Secret.
	Authorizer authorizer.UnconditionalAuthorizer
	// Target names the target cluster of revisions if it is not the host.
	Target string
}

// WithBodies returns the innermost handler: after authentication, authorization and audit, before
// the endpoint decodes the request. In writes of a ClusterExtensionRevision it replaces manifests
// by their identity and digest.
//
// The strategy alone would be too late: server-side apply and managed fields compare the sent
// object with the stored one before any strategy runs. Two managers that apply the same manifests
// would conflict, and a PUT would take ownership each time.
//
// An unreadable body passes unchanged, so that the endpoint reports duplicate fields, syntax and
// size itself. An invalid manifest stays inline for the strategy to report. The handler refuses
// only bodies that would take too much memory, in every request, and too many elements in writes of
// our kinds (see amounts).
func WithBodies(next http.Handler, deps FilterDeps) http.Handler {
	f := &filter{deps: deps, inliner: inliner{digester: deps.Digester}}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Body == nil || req.Body == http.NoBody || !carriesBody(req.Method) || streams(req) {
			next.ServeHTTP(w, req)
			return
		}
		share := deps.Budget.Share(userOf(req))
		defer share.GiveBack()
		req, err := f.admit(req, share)
		if err != nil {
			responsewriters.ErrorNegotiated(err, deps.Serializer, v1alpha1.SchemeGroupVersion, w, req)
			return
		}
		next.ServeHTTP(w, req)
	})
}

type filter struct {
	deps    FilterDeps
	inliner inliner
}

func carriesBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch || method == http.MethodDelete
}

// streams reports whether a request is an import, whose body is never held as a whole: its reader
// has its own bounds.
func streams(req *http.Request) bool {
	info, ok := request.RequestInfoFrom(req.Context())
	return ok && info.IsResourceRequest && info.APIGroup == v1alpha1.GroupName && info.Resource == "revisionhistories" && info.Subresource == "import"
}

// writesRevision is true for requests whose body is a revision.
func writesRevision(info *request.RequestInfo) bool {
	if !info.IsResourceRequest || info.APIGroup != v1alpha1.GroupName || info.Resource != resource {
		return false
	}
	switch info.Subresource {
	case "":
		return info.Verb == "create" || info.Verb == "update" || info.Verb == "patch"
	case ProposalSubresource:
		return info.Verb == "create"
	default:
		return false
	}
}

// userOf names who sent a request. All requests of one user count together.
func userOf(req *http.Request) string {
	if who, ok := request.UserFrom(req.Context()); ok {
		return who.GetName()
	}
	return ""
}

// admit returns the request as the endpoint should see it, or the answer when
// decoding its body, here or there, would take too much memory. Manifests that it
// took out are in the new request's context.
func (f *filter) admit(req *http.Request, share *requestbody.Share) (*http.Request, error) {
	info, ok := request.RequestInfoFrom(req.Context())
	form := requestbody.FormOf(req.Header.Get("Content-Type"), req.Method)
	writes, lists := ok && writesRevision(info), ok && bringsLists(info)
	ctx, held := req.Context(), newStaged()
	if writes {
		ctx, held = withStaged(ctx)
		req = req.WithContext(ctx)
	}
	body, complete, err := requestbody.Read(req, f.deps.MaxBodyBytes, share)
	if err != nil || !complete {
		return req, err
	}
	if ok && info.IsResourceRequest && !writes && len(body) > maxOtherBodyBytes {
		return req, tooLargeBody("the body of this request", len(body), maxOtherBodyBytes)
	}
	replacement := body
	if lists {
		if replacement, err = f.replace(ctx, info, body, form, held, share); err != nil {
			return req, err
		}
	}
	req.Body = io.NopCloser(bytes.NewReader(replacement))
	req.ContentLength = int64(len(replacement))
	// From here on the endpoint decodes what is left.
	if err := share.Set(form.Weigh(replacement) + held.bytes()); err != nil {
		return req, err
	}
	return req, form.Check(replacement)
}

// replace returns the body of a write of our kinds as the endpoint should see it. For a revision it
// moves the manifests into held, and seals it. A body with too many elements stays unchanged.
func (f *filter) replace(ctx context.Context, info *request.RequestInfo, body []byte, form requestbody.Form, held *staged, share *requestbody.Share) ([]byte, error) {
	defer held.seal()
	tree, err := form.Decode(body, share)
	if err != nil {
		return nil, err
	}
	if tree == nil {
		return body, f.stageLoosely(ctx, info, body, form, held)
	}
	if err := checkAmounts(info, tree); err != nil {
		return nil, err
	}
	if writesRevision(info) {
		if err := f.admitSecrets(ctx, info, tree, secretsIn(info.Verb, tree)); err != nil {
			return nil, err
		}
		held.see(secretsIn("update", tree))
	}
	changed := writesRevision(info) && f.rewrite(ctx, info, tree, held)
	if err := checkRest(tree); err != nil {
		return nil, err
	}
	if !changed {
		return body, nil
	}
	// A tree that was read from JSON can be written as JSON.
	encoded, err := json.Marshal(tree)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encoding the request without its manifests: %w", err))
	}
	return encoded, nil
}

// stageLoosely is for a body that the endpoint decodes as it came.
func (f *filter) stageLoosely(ctx context.Context, info *request.RequestInfo, body []byte, form requestbody.Form, held *staged) error {
	tree, operations := form.DecodeLoosely(body), form.DecodePatch(body)
	if err := checkAmounts(info, tree); err != nil {
		return err
	}
	if err := checkPatchAmounts(info, operations); err != nil {
		return err
	}
	if writesRevision(info) {
		secrets := append(secretsIn(info.Verb, tree), secretsInPatch(operations)...)
		if err := f.admitSecrets(ctx, info, tree, secrets); err != nil {
			return err
		}
		held.see(append(secrets, secretsIn("update", tree)...))
		f.inliner.stageTree(tree, held)
		f.inliner.stagePatch(operations, held)
	}
	if err := checkRest(tree); err != nil {
		return err
	}
	return checkOperations(operations)
}

// rewrite brings a decoded body into the form in which revisions are stored,
// and tells whether it changed anything.
func (f *filter) rewrite(ctx context.Context, info *request.RequestInfo, tree map[string]any, held *staged) bool {
	known := sync.OnceValue(func() map[entryKey]facts { return f.knownOf(ctx, info) })
	digestsOnly := entriesWithoutManifest(tree)
	changed := f.inliner.rewriteTree(tree, known, held)
	if len(digestsOnly) > 0 && info.Verb != "create" {
		fillFacts(known(), digestsOnly)
		changed = true
	}
	return changed
}

// knownOf are the entries of the stored revision that a request changes, nothing when there is none.
func (f *filter) knownOf(ctx context.Context, info *request.RequestInfo) map[entryKey]facts {
	if info.Verb == "create" {
		return nil
	}
	stored, err := f.deps.Stored(ctx, info.Name)
	if err != nil {
		return nil
	}
	return factsIn([]olm.ClusterExtensionRevision{*stored})
}

// fillFacts gives entries that have only a digest what the stored revision shows
// of them. A client may leave that out, or send something wrong; server-side
// apply would take that for another content. A manifest that the stored revision
// lacks is another content anyway.
func fillFacts(known map[entryKey]facts, entries []map[string]any) {
	for _, entry := range entries {
		known[keyOfTree(entry)].ontoTree(entry)
	}
}
