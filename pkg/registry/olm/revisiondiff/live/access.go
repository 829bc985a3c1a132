package live

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

const (
	// reviewsAtOnce bounds the concurrent access reviews.
	reviewsAtOnce = 16
	// worthAll is the number of objects of one kind and namespace that makes one check of the right
	// to all of them worthwhile.
	worthAll = 3
)

// accessReviews checks what one caller may see. It is for one preview.
type accessReviews struct {
	authorizer authorizer.UnconditionalAuthorizer
	kinds      Kinds
	caller     user.Info
	question   revisiondiff.LiveQuestion
	// withheld counts the objects that the caller cannot see.
	withheld int
}

// scope groups access reviews of objects that differ only in the name.
type scope struct {
	resource  schema.GroupVersionResource
	namespace string
}

// permit implements preview.Permit. It ignores objects that the question leaves out, and does not
// count them.
func (a *accessReviews) permit(ctx context.Context, subjects []preview.Subject) ([]preview.Grant, error) {
	asked := a.asked(subjects)
	scopes, err := a.scopes(ctx, subjects, asked)
	if err != nil {
		return nil, err
	}
	seen, err := a.may(ctx, "get", subjects, scopes, asked)
	if err != nil {
		return nil, err
	}
	var leaving, staying []int
	for _, i := range seen {
		if subjects[i].Leaving {
			leaving = append(leaving, i)
		} else {
			staying = append(staying, i)
		}
	}
	if staying, err = a.may(ctx, "patch", subjects, scopes, staying); err != nil {
		return nil, err
	}
	creating, err := a.may(ctx, "create", subjects, scopes, staying)
	if err != nil {
		return nil, err
	}
	a.withheld = len(asked) - len(leaving) - len(staying)
	grants := make([]preview.Grant, len(subjects))
	for _, i := range append(leaving, staying...) {
		grants[i].Read = true
	}
	for _, i := range creating {
		grants[i].Create = true
	}
	return grants, nil
}

// asked returns the indices of the subjects that the answer may mention.
func (a *accessReviews) asked(subjects []preview.Subject) []int {
	listed := make(map[manifest.ID]bool, len(a.question.Manifests))
	for _, object := range a.question.Manifests {
		listed[object.ID] = true
	}
	asked := make([]int, 0, len(subjects))
	for i, subject := range subjects {
		if !subject.Leaving && listed[subject.ID] || subject.Leaving && a.question.Shows(subject.ID) {
			asked = append(asked, i)
		}
	}
	return asked
}

// may returns the subjects, out of some, that the caller may use the verb on.
func (a *accessReviews) may(ctx context.Context, verb string, subjects []preview.Subject, scopes map[int]scope, some []int) ([]int, error) {
	allowed, err := a.mayAll(ctx, verb, len(subjects), scopes, some)
	if err != nil {
		return nil, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for _, i := range some {
		if allowed[i] {
			continue
		}
		group.Go(func() error {
			var err error
			allowed[i], err = a.review(ctx, verb, scopes[i], subjects[i].Name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(some), func(i int) bool { return !allowed[i] }), nil
}

// mayAll reports, by index, the objects whose whole scope the caller may use the verb on. In the
// API of access reviews, an empty name means all names. Scopes with few subjects are not checked.
func (a *accessReviews) mayAll(ctx context.Context, verb string, subjects int, scopes map[int]scope, some []int) ([]bool, error) {
	members := map[scope][]int{}
	for _, i := range some {
		members[scopes[i]] = append(members[scopes[i]], i)
	}
	allowed := make([]bool, subjects)
	err := each(ctx, members, func(ctx context.Context, s scope) error {
		if len(members[s]) < worthAll {
			return nil
		}
		all, err := a.review(ctx, verb, s, "")
		for _, i := range members[s] {
			allowed[i] = all
		}
		return err
	})
	return allowed, err
}

// review runs one access review. An error allows nothing.
func (a *accessReviews) review(ctx context.Context, verb string, s scope, name string) (bool, error) {
	return allows(ctx, a.authorizer, a.caller, authz.On(s.resource, verb, s.namespace, name))
}

func allows(ctx context.Context, by authorizer.UnconditionalAuthorizer, who user.Info, asked authz.Right) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	allowed, err := asked.Has(ctx, by, who)
	if err != nil {
		return false, &reviewError{err}
	}
	return allowed, nil
}

// reviewError reports an access review without an answer.
type reviewError struct{ err error }

func (e *reviewError) Error() string { return "asking what you may do: " + e.err.Error() }

func (e *reviewError) Unwrap() error { return e.err }

func (a *accessReviews) scopes(ctx context.Context, subjects []preview.Subject, some []int) (map[int]scope, error) {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, i := range some {
		kinds[subjects[i].GroupVersionKind()] = true
	}
	reached := make(map[schema.GroupVersionKind]reach, len(kinds))
	brought := definitions(a.question.Manifests)
	var mu sync.Mutex
	err := each(ctx, kinds, func(ctx context.Context, kind schema.GroupVersionKind) error {
		found, err := a.reach(ctx, kind, brought)
		mu.Lock()
		defer mu.Unlock()
		reached[kind] = found
		return err
	})
	if err != nil {
		return nil, err
	}
	scopes := make(map[int]scope, len(some))
	for _, i := range some {
		kind := reached[subjects[i].GroupVersionKind()]
		namespace := subjects[i].Namespace
		if kind.clusterScoped {
			namespace = metav1.NamespaceNone
		}
		scopes[i] = scope{kind.resource, namespace}
	}
	return scopes, nil
}

// reach describes how to address a kind. Access reviews of a cluster-scoped object have no
// namespace, even if its manifest has one: rights in a namespace do not cover the object.
type reach struct {
	resource      schema.GroupVersionResource
	clusterScoped bool
}

// reach returns the address of a kind. For a kind that is not served, it uses a definition among
// the manifests, or the usual plural.
func (a *accessReviews) reach(ctx context.Context, kind schema.GroupVersionKind, brought map[schema.GroupKind]defined) (reach, error) {
	mapping, err := a.kinds.Served(ctx, kind)
	switch {
	case err == nil:
		return reach{mapping.Resource, mapping.Scope != nil && mapping.Scope.Name() == meta.RESTScopeNameRoot}, nil
	case !meta.IsNoMatchError(err):
		return reach{}, &kindsError{err}
	}
	if found := brought[kind.GroupKind()]; found.plural != "" {
		return reach{kind.GroupVersion().WithResource(found.plural), found.clusterScoped}, nil
	}
	guess, _ := meta.UnsafeGuessKindToResource(kind)
	return reach{resource: guess}, nil
}

// kindsError reports that the served kinds could not be determined. It does not name the kind,
// because the caller's rights are not known yet.
type kindsError struct{ err error }

func (e *kindsError) Error() string {
	return "the cluster does not say which kinds it serves"
}

func (e *kindsError) Unwrap() error { return e.err }

// defined holds the fields of a CustomResourceDefinition about its kind.
type defined struct {
	plural        string
	clusterScoped bool
}

// definitions returns the kinds of the CustomResourceDefinitions among manifests.
func definitions(objects []manifest.Object) map[schema.GroupKind]defined {
	kinds := map[schema.GroupKind]defined{}
	for _, object := range objects {
		if !object.IsDefinition() {
			continue
		}
		var definition struct {
			Spec struct {
				Group, Scope string
				Names        struct{ Kind, Plural string }
			}
		}
		// An unreadable definition defines nothing.
		if err := json.Unmarshal(object.JSON, &definition); err == nil {
			kinds[schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}] =
				defined{definition.Spec.Names.Plural, definition.Spec.Scope == "Cluster"}
		}
	}
	return kinds
}

// each calls a function for the keys of a map, with a limit on concurrent calls.
func each[K comparable, V any](ctx context.Context, items map[K]V, do func(context.Context, K) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
