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
	// Digester computes digests of manifests. NewStorage must get the same digester.
	Digester manifest.Digester
	// Serializer writes the error for a body that takes too much memory.
	Serializer runtime.NegotiatedSerializer
	// Budget bounds the memory of all bodies; nil means no limit.
	Budget *requestbody.Budget
	// MaxBodyBytes is the server's MaxRequestBodyBytes; 0 means no limit.
	MaxBodyBytes int64
	// Stored returns a stored revision, like Storage.Stored. Only requests call it, so it may be
	// set after the handler is created.
	Stored func(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
	// Authorizer checks whether callers may know a Secret.
	Authorizer authorizer.UnconditionalAuthorizer
	// Target names the target cluster of all revisions if it is not the host.
	Target string
}

// WithBodies returns the innermost handler: after authentication, authorization and audit, and
// before the endpoint decodes the request. In writes of a ClusterExtensionRevision it replaces
// manifests by their identity and digest.
//
// The strategy alone would be too late. Server-side apply and managed fields compare the sent
// object with the stored object before any strategy runs. Two managers that apply the same
// manifests would conflict, and every PUT would take ownership.
//
// An unreadable body passes unchanged, so that the endpoint reports duplicate fields, syntax and
// size itself. An invalid manifest stays inline, and the strategy reports it. The handler refuses
// every body that would take too much memory. In writes of Penstock's kinds it also refuses too
// many elements (see amounts).
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

// streams reports whether a request is an import. The server never holds the whole body of an
// import; its reader has its own limits.
func streams(req *http.Request) bool {
	info, ok := request.RequestInfoFrom(req.Context())
	return ok && info.IsResourceRequest && info.APIGroup == v1alpha1.GroupName && info.Resource == "revisionhistories" && info.Subresource == "import"
}

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

// userOf returns the user of a request, or "" if unknown.
func userOf(req *http.Request) string {
	if who, ok := request.UserFrom(req.Context()); ok {
		return who.GetName()
	}
	return ""
}

// admit returns the request as the endpoint must see it, or an error if decoding its body would
// take too much memory. The new request's context holds the removed manifests.
func (f *filter) admit(req *http.Request, share *requestbody.Share) (*http.Request, error) {
	info, ok := request.RequestInfoFrom(req.Context())
	form := requestbody.FormOf(req.Header.Get("Content-Type"), req.Method)
	writes, lists := ok && writesRevision(info), ok && hasLists(info)
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
	// From here on the endpoint decodes the replacement.
	if err := share.Set(form.Weigh(replacement) + held.bytes()); err != nil {
		return req, err
	}
	return req, form.Check(replacement)
}

// replace returns the body of a write of Penstock's kinds as the endpoint must see it. It moves the
// manifests of a revision into held, and seals held. It refuses a body with too many elements.
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
	// A tree that was decoded from JSON can be encoded as JSON.
	encoded, err := json.Marshal(tree)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("encoding the request without its manifests: %w", err))
	}
	return encoded, nil
}

// stageLoosely checks a body that the endpoint decodes unchanged.
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

// rewrite converts a decoded body to the stored form of revisions, and reports whether it changed
// the body.
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

// knownOf returns the entries of the stored revision that a request changes, or nil if none is
// stored.
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

// fillFacts sets the facts of entries that have only a digest to those of the stored revision.
// Otherwise, server-side apply would treat missing or wrong facts as a change of content. A
// manifest that the stored revision lacks is a change anyway.
func fillFacts(known map[entryKey]facts, entries []map[string]any) {
	for _, entry := range entries {
		known[keyOfTree(entry)].ontoTree(entry)
	}
}
