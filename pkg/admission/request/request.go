// Package request is what admission plugins must know of a request and cannot see
// in its attributes: all manifests of a new revision, however large they are;
// whether a delete leaves the objects; and whether the request came from within
// this process. The endpoints and the handler chain say so, plugins read it. It
// travels in contexts, which no client can write to.
package request

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/penstock-project/penstock/pkg/manifest"
)

type (
	manifestsKey struct{}
	orphansKey   struct{}
	internalKey  struct{}
)

// WithManifests says which manifests a new revision has, in rollout order and
// verified against its digests.
func WithManifests(ctx context.Context, manifests []manifest.Object) context.Context {
	return context.WithValue(ctx, manifestsKey{}, manifests)
}

// ManifestsFrom returns the manifests of the new revision; ok is false where
// nobody has said which ones there are.
func ManifestsFrom(ctx context.Context) (manifests []manifest.Object, ok bool) {
	manifests, ok = ctx.Value(manifestsKey{}).([]manifest.Object)
	return manifests, ok
}

// WithOrphans says that a delete leaves the objects of the revision behind.
func WithOrphans(ctx context.Context) context.Context {
	return context.WithValue(ctx, orphansKey{}, true)
}

// LeavesOrphans tells whether a delete leaves the objects of the revision behind.
func LeavesOrphans(ctx context.Context) bool {
	orphans, _ := ctx.Value(orphansKey{}).(bool)
	return orphans
}

// MarkInternal notes which requests this process sends to itself: those that bear
// the token of the loopback client. The token is made at start and never leaves
// the process. Names and uids prove nothing: headers of the front proxy and of
// impersonation carry them too. An empty token marks nothing.
//
// It belongs around authentication, which takes the header away.
func MarkInternal(next http.Handler, token string) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given := r.Header.Values("Authorization")
		if len(given) == 1 {
			if found := sha256.Sum256([]byte(given[0])); subtle.ConstantTimeCompare(found[:], want[:]) == 1 {
				r = r.WithContext(context.WithValue(r.Context(), internalKey{}, true))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// IsInternal tells whether a request is one of this process, in its own name. An
// internal request that impersonates somebody is that somebody's.
func IsInternal(ctx context.Context, who user.Info) bool {
	internal, _ := ctx.Value(internalKey{}).(bool)
	return internal && who != nil && who.GetName() == user.APIServerUser
}
