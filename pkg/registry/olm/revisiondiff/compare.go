package revisiondiff

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
)

const (
	// compareTimeout bounds the time of one comparison. An object that was not compared by then is
	// listed without details.
	compareTimeout = 20 * time.Second
	// queueTimeout is the time that a comparison waits for running comparisons.
	queueTimeout = 10 * time.Second
	// maxComparedBytes bounds the manifests that are compared at the same time, in bytes of JSON.
	// Decoded, they take about ten times as much. The two largest possible revisions just fit.
	maxComparedBytes = 2 * v1alpha1.MaxManifestBytes
	// entryBytes is added to the size of each object, because a revision does not show the size of
	// Secrets.
	entryBytes = 4 << 10
)

// Revisions reads revisions. *clusterextensionrevision.REST implements it.
type Revisions interface {
	// Stored returns a stored revision.
	Stored(ctx context.Context, name string) (*olm.ClusterExtensionRevision, error)
	// Chain returns the revisions of a chain, unsorted.
	Chain(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error)
	// Contents returns the manifests of a revision, in rollout order.
	Contents(ctx context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error)
}

// Deps are the dependencies of New.
type Deps struct {
	Revisions Revisions
	// Authorizer checks the rights of callers.
	Authorizer authorizer.UnconditionalAuthorizer
	// Schema returns further types of fields; with nil, only the types that revisions define are
	// known.
	Schema diffschema.Schema
	// Redactor hides further fields besides the content of Secrets; nil hides only Secrets.
	Redactor *redact.Redactor
	// Live compares revisions with the cluster.
	Live Live
}

// Comparer compares revisions for callers.
type Comparer struct {
	deps Deps
	// inFlight bounds the memory of comparisons, in bytes of manifests.
	inFlight *semaphore.Weighted
}

// New returns a Comparer. All requests should share one Comparer.
func New(deps Deps) *Comparer {
	return &Comparer{deps: deps, inFlight: semaphore.NewWeighted(maxComparedBytes)}
}

// Between returns the changes from one revision to another that the caller may see. If from is nil,
// the changes are from an empty revision. Between does not check the right to the diffs.
func (c *Comparer) Between(ctx context.Context, from, to *olm.ClusterExtensionRevision, options *v1alpha1.RevisionDiffOptions) (*v1alpha1.RevisionDiff, error) {
	return c.compare(ctx, from, to, options, func(ctx context.Context) (older, newer []manifest.Object, err error) {
		return c.contents(ctx, from, to)
	})
}

// Proposed works like Between, for a revision that is not stored. manifests has its manifests in
// rollout order.
func (c *Comparer) Proposed(ctx context.Context, from, to *olm.ClusterExtensionRevision, manifests []manifest.Object) (*v1alpha1.RevisionDiff, error) {
	return c.compare(ctx, from, to, nil, func(ctx context.Context) (older, newer []manifest.Object, err error) {
		if from != nil {
			older, err = c.deps.Revisions.Contents(ctx, from)
		}
		return older, manifests, err
	})
}

// compare works like Between. A function returns the manifests of both sides.
func (c *Comparer) compare(ctx context.Context, from, to *olm.ClusterExtensionRevision, options *v1alpha1.RevisionDiffOptions,
	contents func(context.Context) (older, newer []manifest.Object, err error),
) (*v1alpha1.RevisionDiff, error) {
	scope, err := c.scope(ctx, options, from, to)
	if err != nil {
		return nil, err
	}
	release, err := c.admit(ctx, from, to)
	if err != nil {
		return nil, err
	}
	defer release()
	ctx, cancel := context.WithTimeout(ctx, compareTimeout)
	defer cancel()

	older, newer, err := contents(ctx)
	if err != nil {
		return nil, err
	}
	// Types from the revisions' definitions are used even if the definitions are not selected.
	report := diff.Revisions(ctx, scope.selected(older), scope.selected(newer), c.options(options, newer, older))
	out := newDiff(from, to)
	scope.fill(out, report)
	scope.count(&out.Summary, from, to)
	scope.nameRemoved(out, from, to)
	scope.nameApproved(out, from, to)
	lostSigner(out, from, to)
	namePatches(out, to)
	if from == nil {
		out.Notes = append(out.Notes, noEarlierRevision(to))
	}
	return out, nil
}

// contents returns the manifests of two revisions. It does not read the manifests of revisions with
// the same content, because they are not compared.
func (c *Comparer) contents(ctx context.Context, from, to *olm.ClusterExtensionRevision) (older, newer []manifest.Object, err error) {
	if from != nil && sameContent(from, to) {
		return unread(from), unread(to), nil
	}
	if from != nil {
		if older, err = c.deps.Revisions.Contents(ctx, from); err != nil {
			return nil, nil, err
		}
	}
	newer, err = c.deps.Revisions.Contents(ctx, to)
	return older, newer, err
}

func sameContent(a, b *olm.ClusterExtensionRevision) bool {
	counts := diff.Count(clusterextensionrevision.Refs(a), clusterextensionrevision.Refs(b))
	return counts.Added+counts.Changed+counts.Removed == 0
}

func unread(revision *olm.ClusterExtensionRevision) []manifest.Object {
	var objects []manifest.Object
	for _, ref := range clusterextensionrevision.Refs(revision) {
		objects = append(objects, manifest.Object{Ref: ref})
	}
	return objects
}

// admit waits until memory for a comparison is free, and returns a function to release it.
func (c *Comparer) admit(ctx context.Context, revisions ...*olm.ClusterExtensionRevision) (func(), error) {
	var weight int64
	for _, revision := range revisions {
		weight += weightOf(revision)
	}
	weight = min(weight, maxComparedBytes)
	waiting, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if err := c.inFlight.Acquire(waiting, weight); err != nil {
		const retryAfterSeconds = 5
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("the server is busy comparing other revisions: %v", err), retryAfterSeconds)
	}
	return func() { c.inFlight.Release(weight) }, nil
}

func weightOf(revision *olm.ClusterExtensionRevision) int64 {
	if revision == nil {
		return 0
	}
	var bytes int64
	for _, phase := range revision.Spec.Phases {
		for _, entry := range phase.Objects {
			bytes += entryBytes + entry.Size
		}
	}
	return bytes
}

// options returns the options for a comparison of sides. The types of the first side have priority.
func (c *Comparer) options(query *v1alpha1.RevisionDiffOptions, sides ...[]manifest.Object) diff.Options {
	var schemas []diffschema.Schema
	for _, side := range sides {
		schemas = append(schemas, diffschema.NewDefinitions(side))
	}
	options := diff.Options{Schema: diffschema.Layers(append(schemas, c.deps.Schema)...), Redactor: c.deps.Redactor, Selecting: sides}
	if query != nil && query.ObjectKind != "" && query.ObjectName != "" {
		options.Limits = diff.ForOne()
	}
	if !unified(query) {
		// Lines are still counted.
		options.Limits.UnifiedBytes, options.Limits.TotalUnifiedBytes = 1, 1
	}
	return options
}

func unified(query *v1alpha1.RevisionDiffOptions) bool {
	return query == nil || query.Unified == nil || *query.Unified
}
