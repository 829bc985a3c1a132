// Package access checks further rights of the caller of a request. Reads that are computed from
// several objects need it: the right to the computed object must not replace the rights to its
// sources.
package access

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
)

const (
	// MaxNamespaces and MaxNames bound how many questions about Secrets one
	// request may cost the cluster, each of which is a review by its API server:
	// first whether the caller may get all Secrets of a namespace, then, where they
	// cannot, one by one. A right that is not asked for is not allowed.
	MaxNamespaces = 100
	MaxNames      = 100

	revisions = "clusterextensionrevisions"
)

// secrets is the resource of Secrets.
func secrets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

// Caller asks what the user of one request may do. A refusal is an error; nothing is
// allowed because nobody answered.
type Caller struct {
	authorizer authorizer.UnconditionalAuthorizer
	secrets    map[string]bool
	// known are the answers of MayKnowSecret.
	known map[authz.Right]bool
	// names counts the Secrets that were asked about one by one.
	names     int
	exhausted bool
}

// New returns the caller of requests that are asked about with a context of
// theirs. It is for one request.
func New(a authorizer.UnconditionalAuthorizer) *Caller {
	return &Caller{authorizer: a, secrets: map[string]bool{}, known: map[authz.Right]bool{}}
}

// MayGetSecret reports whether the caller may get a Secret. Most callers may get all Secrets of a
// namespace or none, so that is asked first, once.
func (c *Caller) MayGetSecret(ctx context.Context, namespace, name string) (bool, error) {
	all, asked := c.secrets[namespace]
	if !asked {
		if len(c.secrets) == MaxNamespaces {
			c.exhausted = true
			return false, nil
		}
		var err error
		if all, err = c.mayGetSecret(ctx, namespace, ""); err != nil {
			return false, err
		}
		c.secrets[namespace] = all
	}
	if all {
		return true, nil
	}
	if c.names == MaxNames {
		c.exhausted = true
		return false, nil
	}
	c.names++
	return c.mayGetSecret(ctx, namespace, name)
}

// MayKnowSecret reports whether the caller may know what is in a Secret: by the right to get it, or
// to patch it, as kube-apiserver answers a patch, an empty one or a dry-run too, with the whole
// object. It is asked of all Secrets first, then of those of the namespace, then of this one.
func (c *Caller) MayKnowSecret(ctx context.Context, namespace, name string) (bool, error) {
	for _, scope := range []struct{ namespace, name string }{{}, {namespace: namespace}, {namespace, name}} {
		for _, verb := range []string{"get", "patch"} {
			known := authz.On(secrets(), verb, scope.namespace, scope.name)
			allowed, asked := c.known[known]
			if !asked {
				var err error
				allowed, err = c.may(ctx, known)
				if err != nil {
					return false, apierrors.NewInternalError(fmt.Errorf("asking whether you may %s Secret %s/%s: %w", verb, namespace, name, err))
				}
				c.known[known] = allowed
			}
			if allowed {
				return true, nil
			}
		}
	}
	return false, nil
}

// MayHaveAnything reports whether the caller may have anything written by a chain, without a right
// on what is written (see admission plugin Privilege): by the right to use the target cluster, if
// there is one, or not to be checked at all.
func (c *Caller) MayHaveAnything(ctx context.Context, chain, target string) (bool, error) {
	rights := []authz.Right{authz.Bypass(chain)}
	if target != "" {
		rights = append(rights, authz.Use(target))
	}
	for _, asked := range rights {
		allowed, err := c.may(ctx, asked)
		if err != nil {
			return false, apierrors.NewInternalError(fmt.Errorf("asking whether you may %s %s: %w", asked.Verb, asked.Resource, err))
		}
		if allowed {
			return true, nil
		}
	}
	return false, nil
}

// Exhausted reports whether a Secret was not asked about, because there were too many.
func (c *Caller) Exhausted() bool { return c.exhausted }

func (c *Caller) mayGetSecret(ctx context.Context, namespace, name string) (bool, error) {
	allowed, err := c.may(ctx, authz.On(secrets(), "get", namespace, name))
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("asking whether you may get Secret %s/%s: %w", namespace, name, err))
	}
	return allowed, nil
}

// NeedSubresource returns nil when the caller may get a subresource of a
// revision, and what to answer when they cannot. It does not look whether the
// revision exists.
func (c *Caller) NeedSubresource(ctx context.Context, revision, subresource string) error {
	return c.need(ctx, authz.Right{Verb: "get", Subresource: subresource, Name: revision})
}

// NeedCreate is NeedSubresource for creating a revision.
func (c *Caller) NeedCreate(ctx context.Context) error {
	return c.need(ctx, authz.Right{Verb: "create"})
}

// NeedBegin returns nil when the caller may begin an extension with nothing, as admission
// asks for a first revision without objects: by that right, or by the one to bypass the
// check, which stands for it.
func (c *Caller) NeedBegin(ctx context.Context, extension string) error {
	for _, asked := range []authz.Right{authz.Bypass(extension), authz.Begin(extension)} {
		allowed, err := c.may(ctx, asked)
		switch {
		case err != nil:
			return apierrors.NewInternalError(fmt.Errorf("asking whether you may begin extension %s: %w", extension, err))
		case allowed:
			return nil
		}
	}
	return apierrors.NewForbidden(v1alpha1.Resource("revisionhistories"), extension,
		errors.New("an archive without revisions, or one that leaves out more numbers than a new revision may, also needs the right to begin extensions.policy.penstock.dev"))
}

// need returns nil when the caller has a right on revisions, whose resource is left out.
func (c *Caller) need(ctx context.Context, asked authz.Right) error {
	what := asked.Verb + " " + revisions
	if asked.Subresource != "" {
		what += "/" + asked.Subresource
	}
	asked.Group, asked.Version, asked.Resource = v1alpha1.GroupName, v1alpha1.SchemeGroupVersion.Version, revisions
	allowed, err := c.may(ctx, asked)
	switch {
	case err != nil:
		return apierrors.NewInternalError(fmt.Errorf("asking whether you may %s: %w", what, err))
	case !allowed:
		return apierrors.NewForbidden(v1alpha1.Resource(revisions), asked.Name, fmt.Errorf("this also needs the right to %s", what))
	}
	return nil
}

func (c *Caller) may(ctx context.Context, asked authz.Right) (bool, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return false, errors.New("the request has no user")
	}
	return asked.Has(ctx, c.authorizer, caller)
}
