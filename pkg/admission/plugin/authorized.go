// Package plugin has the shared code of admission plugins that check a requester's rights in the
// cluster.
package plugin

import (
	"context"
	"fmt"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/authz"
)

// Authorized is the part of a plugin that checks a right of the requester in the cluster. Call
// SetAuthorizer before its use.
type Authorized struct {
	*admission.Handler
	name       string
	authorizer authorizer.UnconditionalAuthorizer
}

var _ admission.InitializationValidator = &Authorized{}

// NewAuthorized returns the common part of the plugin with the given name and operations.
func NewAuthorized(name string, operations ...admission.Operation) *Authorized {
	return &Authorized{Handler: admission.NewHandler(operations...), name: name}
}

// SetAuthorizer sets the authorizer. It must ask the cluster and not use a cache.
func (p *Authorized) SetAuthorizer(by authorizer.UnconditionalAuthorizer) { p.authorizer = by }

// ValidateInitialization refuses a plugin without an authorizer.
func (p *Authorized) ValidateInitialization() error {
	if p.authorizer == nil {
		return fmt.Errorf("admission plugin %s was given no authorizer", p.name)
	}
	return nil
}

// Has reports whether the requester has a right. If the cluster gives no answer, the error is the
// answer to the request.
func (p *Authorized) Has(ctx context.Context, a admission.Attributes, needed authz.Right) (bool, error) {
	allowed, err := needed.Has(ctx, p.authorizer, a.GetUserInfo())
	if !allowed && err != nil {
		return false, authz.Unknown(err)
	}
	return allowed, nil
}
