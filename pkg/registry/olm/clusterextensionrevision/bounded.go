package clusterextensionrevision

import (
	"context"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const (
	// maxNamespacesAsked and maxNamesAsked bound how many questions one request
	// may cost the cluster, each of which is a review by its API server: first
	// whether the caller may get all Secrets of a namespace, then, where he may
	// not, one by one. What is not asked is not allowed.
	maxNamespacesAsked = 100
	maxNamesAsked      = 100
)

// bounded is an authorizer that does not answer everything. It serves one request.
type bounded struct {
	authorizer.UnconditionalAuthorizer
	// namespaces and names are how many of such questions were put.
	namespaces, names int
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (b *bounded) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked, limit := &b.namespaces, maxNamespacesAsked
	if a.GetName() != "" {
		asked, limit = &b.names, maxNamesAsked
	}
	*asked++
	if *asked > limit {
		return authorizer.DecisionNoOpinion, "not asked", nil
	}
	return b.UnconditionalAuthorizer.Authorize(ctx, a)
}

// exhausted tells whether something was not asked.
func (b *bounded) exhausted() bool {
	return b.namespaces > maxNamespacesAsked || b.names > maxNamesAsked
}
