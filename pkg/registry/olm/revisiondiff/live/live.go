// Package live computes the current changes that a rollout of a revision would make in the cluster.
// The engine's preview runs under a separate identity, penstock-reader. This package ensures that
// callers learn only what their own rights to get and to patch would show them.
package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// timeout bounds a preview. It leaves part of a request's time for the comparison.
const timeout = 15 * time.Second

// Previewer runs previews. *preview.Previewer implements it.
type Previewer interface {
	Preview(ctx context.Context, work rollout.Work, permit preview.Permit) (preview.Preview, error)
}

// Kinds returns the resource of a kind. *targetclient.Client implements it.
type Kinds interface {
	// Served returns a NoMatch error for a kind that is not served.
	Served(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error)
}

// Work returns the engine's work for a rollout of a single revision, and a version that changes
// with the chain's inventory. Bodies may be nil.
type Work func(ctx context.Context, revision *olm.ClusterExtensionRevision) (rollout.Work, int64, error)

// Deps are the dependencies of New. All are required except Objects, Redactor and Timeout.
type Deps struct {
	// Authorizer checks the rights of users in the cluster.
	Authorizer authorizer.UnconditionalAuthorizer
	Previewer  Previewer
	Kinds      Kinds
	Work       Work
	// Reader is the user of the Previewer's requests. Role describes the source of that user's
	// rights, for messages.
	Reader user.Info
	Role   string
	// Objects reads objects as Reader. With nil, the state of objects is unknown.
	Objects ObjectReader
	// Redactor hides confidential values in messages; the default hides the content of Secrets.
	Redactor *redact.Redactor
	Clock    clock.PassiveClock
	// Timeout bounds a preview; the default is 15 seconds.
	Timeout time.Duration
}

// Live implements revisiondiff.Live.
type Live struct {
	deps  Deps
	cache *cache
	queue *queue
}

var _ revisiondiff.Live = &Live{}

// New returns a Live. All requests should share one Live.
func New(deps Deps) *Live {
	if deps.Timeout <= 0 {
		deps.Timeout = timeout
	}
	return &Live{deps: deps, cache: newCache(deps.Clock), queue: newQueue()}
}

// Preview implements revisiondiff.Live:
//
//  1. Find the objects of the rollout.
//  2. Return a recent answer to the same question, if there is one.
//  3. Wait for a place in the queue.
//  4. Run the engine's preview for the objects that the caller may get and patch.
//  5. Convert the result.
//
// If the cluster does not answer every request in time, the whole preview is an error.
func (l *Live) Preview(ctx context.Context, question revisiondiff.LiveQuestion) (revisiondiff.Preview, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return revisiondiff.Preview{}, unavailable("the request has no user")
	}
	work, version, err := l.work(ctx, question.Revision)
	if err != nil {
		return revisiondiff.Preview{}, err
	}
	key := keyOf(caller, question, work, version)
	if known, ok := l.cache.get(key); ok {
		return known, nil
	}
	leave, err := l.queue.enter(ctx, objectsOf(question, work))
	if err != nil {
		return revisiondiff.Preview{}, err
	}
	defer leave()
	// An earlier caller may have asked the same question.
	if known, ok := l.cache.get(key); ok {
		return known, nil
	}
	work.Bodies = newBodies(question.Manifests)
	preview, complete, err := l.preview(ctx, caller, question, work)
	if err == nil && complete {
		l.cache.put(key, preview)
	}
	return preview, err
}

// objectsOf estimates the number of objects to read from the cluster. Most objects that were rolled
// out are in the revision.
func objectsOf(question revisiondiff.LiveQuestion, work rollout.Work) int {
	rolledOut := 0
	for id := range work.Inventory.Entries {
		if question.Shows(id) {
			rolledOut++
		}
	}
	return max(len(question.Manifests), rolledOut)
}

func (l *Live) work(ctx context.Context, revision *olm.ClusterExtensionRevision) (rollout.Work, int64, error) {
	ctx, cancel := context.WithTimeout(ctx, l.deps.Timeout)
	defer cancel()
	work, version, err := l.deps.Work(ctx, revision)
	if err != nil {
		return rollout.Work{}, 0, l.answer(ctx, err)
	}
	return work, version, nil
}

// preview asks the cluster, and reports whether the answer is complete.
func (l *Live) preview(ctx context.Context, caller user.Info, question revisiondiff.LiveQuestion, work rollout.Work) (revisiondiff.Preview, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, l.deps.Timeout)
	defer cancel()
	reviews := &accessReviews{authorizer: l.deps.Authorizer, kinds: l.deps.Kinds, caller: caller, question: question}
	found, err := l.deps.Previewer.Preview(ctx, work, reviews.permit)
	if err == nil {
		err = l.ownRights(ctx, found)
	}
	if err != nil {
		return revisiondiff.Preview{}, false, l.answer(ctx, err)
	}
	preview := revisiondiff.Preview{Report: report(ctx, found, question), Withheld: reviews.withheld}
	if ctx.Err() != nil {
		return revisiondiff.Preview{}, false, l.answer(ctx, ctx.Err())
	}
	return preview, known(found), nil
}

// known reports whether every object was read without concurrent changes. Otherwise, a repeated
// request may learn more.
func known(found preview.Preview) bool {
	return !slices.ContainsFunc(found.Items, func(item preview.Item) bool { return item.Overtaken })
}

// keyOf returns the cache key of a question: the revision, the user, the objects that the answer
// may mention, and the requested details.
func keyOf(caller user.Info, question revisiondiff.LiveQuestion, work rollout.Work, version int64) string {
	var shown []string
	for _, object := range question.Manifests {
		shown = append(shown, object.ID.String())
	}
	manifests := len(shown)
	for id := range work.Inventory.Entries {
		if question.Shows(id) {
			shown = append(shown, id.String())
		}
	}
	slices.Sort(shown[manifests:])
	raw, err := json.Marshal(struct {
		UID, Name, UserUID string
		Groups             []string
		Extra              map[string][]string
		Shown              []string
		Manifests          int
		Version            int64
		Limits             diff.Limits
	}{
		string(question.Revision.UID), caller.GetName(), caller.GetUID(), caller.GetGroups(), caller.GetExtra(),
		shown, manifests, version, question.Options.Limits,
	})
	if err != nil {
		return "" // strings and numbers can be encoded
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

type bodies map[manifest.Digest][]byte

func newBodies(objects []manifest.Object) bodies {
	b := make(bodies, len(objects))
	for _, object := range objects {
		b[object.Digest] = object.JSON
	}
	return b
}

// Body implements rollout.Bodies.
func (b bodies) Body(_ context.Context, ref manifest.Ref) ([]byte, error) {
	body, ok := b[ref.Digest]
	if !ok {
		return nil, fmt.Errorf("the revision does not refer to %s", ref.Digest)
	}
	return body, nil
}
