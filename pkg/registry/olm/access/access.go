// Package access checks rights of a request's caller beyond the right to the requested object. A
// read that is computed from several objects needs these checks: the right to the computed object
// must not replace the rights to its sources.
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
	// MaxNamespaces and MaxNames bound the access reviews about Secrets for one request. The first
	// review covers all Secrets of a namespace. If it is denied, each Secret needs a review. An
	// unchecked right counts as denied.
	MaxNamespaces = 100
	MaxNames      = 100

	revisions = "clusterextensionrevisions"
)

func secrets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
}

// Caller checks the rights of the user of one request. A denial is an error. Without an answer from
// the authorizer, nothing is allowed.
type Caller struct {
	authorizer authorizer.UnconditionalAuthorizer
	secrets    map[string]bool
	known      map[authz.Right]bool
	// names counts the reviews of single Secrets.
	names     int
	exhausted bool
}

// New returns the caller of one request. The context of each check must contain the user.
func New(a authorizer.UnconditionalAuthorizer) *Caller {
	return &Caller{authorizer: a, secrets: map[string]bool{}, known: map[authz.Right]bool{}}
}

// MayGetSecret reports whether the caller may get a Secret. It first checks the right to all
// Secrets of the namespace, once.
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

// MayKnowSecret reports whether the caller may know the content of a Secret. The right to get or to
// patch it suffices: kube-apiserver answers even an empty or dry-run patch with the whole object.
// It checks the rights to all Secrets, then to those of the namespace, then to this Secret.
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

// MayHaveAnything reports whether a chain may write any object for the caller without checks of
// single rights (see admission plugin Privilege). The caller needs the right to bypass the check,
// or to use the target cluster if the chain has one.
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

// Exhausted reports whether the limits prevented the check of a Secret.
func (c *Caller) Exhausted() bool { return c.exhausted }

func (c *Caller) mayGetSecret(ctx context.Context, namespace, name string) (bool, error) {
	allowed, err := c.may(ctx, authz.On(secrets(), "get", namespace, name))
	if err != nil {
		return false, apierrors.NewInternalError(fmt.Errorf("asking whether you may get Secret %s/%s: %w", namespace, name, err))
	}
	return allowed, nil
}

// NeedSubresource returns nil if the caller may get a subresource of a revision, and the error for
// the caller otherwise. The revision need not exist.
func (c *Caller) NeedSubresource(ctx context.Context, revision, subresource string) error {
	return c.need(ctx, authz.Right{Verb: "get", Subresource: subresource, Name: revision})
}

// NeedCreate works like NeedSubresource, for creating a revision.
func (c *Caller) NeedCreate(ctx context.Context) error {
	return c.need(ctx, authz.Right{Verb: "create"})
}

// NeedBegin returns nil if the caller may begin an extension without objects. As for an empty first
// revision, the right to begin or to bypass the check suffices.
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

// need returns nil if the caller has the right. It fills in the resource, which is revisions.
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
