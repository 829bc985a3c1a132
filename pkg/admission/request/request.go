// Package request carries facts of a request that admission plugins cannot see in its attributes:
//
//   - all manifests of a new revision, and which of them the request only named;
//   - the revisions that are imported together;
//   - whether a delete keeps the objects, and what was asked for it before;
//   - whether the request comes from within this process, in its own name or in a user's name.
//
// Endpoints and the handler chain set these values in the context, which no client can write.
// Plugins read them.
package request

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

type (
	manifestsKey struct{}
	borrowedKey  struct{}
	besideKey    struct{}
	orphansKey   struct{}
	internalKey  struct{}
	answersKey   struct{}
)

// WithManifests stores the manifests of a new revision in the context, in rollout order. Their
// digests must be verified.
func WithManifests(ctx context.Context, manifests []manifest.Object) context.Context {
	return context.WithValue(ctx, manifestsKey{}, manifests)
}

// ManifestsFrom returns the manifests of the new revision; ok is false if the context has none.
func ManifestsFrom(ctx context.Context) (manifests []manifest.Object, ok bool) {
	manifests, ok = ctx.Value(manifestsKey{}).([]manifest.Object)
	return manifests, ok
}

// WithBorrowed stores the manifests that the requester named by digest only, each with the revision
// that contains it.
func WithBorrowed(ctx context.Context, borrowed map[manifest.Digest]string) context.Context {
	return context.WithValue(ctx, borrowedKey{}, borrowed)
}

// BorrowedFrom returns the revision that contains a manifest which the requester named by digest
// only. It is empty for a manifest that the requester sent.
func BorrowedFrom(ctx context.Context, digest manifest.Digest) string {
	borrowed, _ := ctx.Value(borrowedKey{}).(map[manifest.Digest]string)
	return borrowed[digest]
}

// WithBeside stores the revisions that an import adds to the chain together with the new one. They are
// not stored in the cluster yet.
func WithBeside(ctx context.Context, revisions []*olm.ClusterExtensionRevision) context.Context {
	return context.WithValue(ctx, besideKey{}, revisions)
}

// BesideFrom returns the revisions that the import adds together with the new one.
func BesideFrom(ctx context.Context) []*olm.ClusterExtensionRevision {
	revisions, _ := ctx.Value(besideKey{}).([]*olm.ClusterExtensionRevision)
	return revisions
}

// WithAnswers adds a cache of authorization answers to the context, so that each right of the user
// is checked once. The context serves one request and one goroutine at a time.
func WithAnswers(ctx context.Context) context.Context {
	return context.WithValue(ctx, answersKey{}, map[authz.Right]bool{})
}

// AnswersFrom returns the cache of authorization answers of the context, for reading and adding.
// Without a cache it returns a new map.
func AnswersFrom(ctx context.Context) map[authz.Right]bool {
	if answers, ok := ctx.Value(answersKey{}).(map[authz.Right]bool); ok {
		return answers
	}
	return map[authz.Right]bool{}
}

// WithOrphans marks a deletion as one that keeps the objects of the revision.
func WithOrphans(ctx context.Context) context.Context {
	return context.WithValue(ctx, orphansKey{}, true)
}

// LeavesOrphans reports whether the deletion keeps the objects of the revision.
func LeavesOrphans(ctx context.Context) bool {
	orphans, _ := ctx.Value(orphansKey{}).(bool)
	return orphans
}

// MarkInternal marks the requests that this process sends to itself: they have the token of the
// loopback client. The token is created at start and never leaves the process. Names and uids prove
// nothing, because headers of the front proxy and of impersonation have them too. With an empty
// token, it marks nothing.
//
// It must wrap authentication, which removes the header.
func MarkInternal(next http.Handler, token string) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Values("Authorization")
		if len(given) == 1 {
			if found := sha256.Sum256([]byte(given[0])); subtle.ConstantTimeCompare(found[:], want[:]) == 1 {
				// An impersonated user of the host can have the name of this process, without its
				// rights.
				r = r.WithContext(context.WithValue(r.Context(), internalKey{}, sent{own: !impersonates(r.Header)}))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// Internal returns a context for actions of this process in its own name, without a request.
func Internal(ctx context.Context) context.Context {
	ctx = genericrequest.WithUser(ctx, &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}})
	return context.WithValue(ctx, internalKey{}, sent{own: true})
}

// sent marks a request of this process. own is false if the request impersonates a user.
type sent struct{ own bool }

// impersonates reports whether a request impersonates a user. The library removes the headers after
// authentication.
func impersonates(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(strings.ToLower(name), "impersonate-") {
			return true
		}
	}
	return false
}

// IsInternal reports whether this process sent the request in its own name. A request that
// impersonates a user counts as that user's.
func IsInternal(ctx context.Context, who user.Info) bool {
	request, _ := ctx.Value(internalKey{}).(sent)
	return request.own && who != nil && who.GetName() == user.APIServerUser
}

// IsSentByPenstock reports whether this process sent the request, in its own name or impersonating
// a user. An impersonated request has only the rights of its user. Only this process has the token,
// so no other process can send such a request.
func IsSentByPenstock(ctx context.Context) bool {
	_, is := ctx.Value(internalKey{}).(sent)
	return is
}
