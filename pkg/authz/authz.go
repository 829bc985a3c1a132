// Package authz has Right, a verb on a resource or on a path. All access checks use this type:
// checks by the host, by a target cluster, and by an authorizer.
package authz

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Right is a verb on a resource, or on one object of it. A right on a path has only the path and a
// verb.
type Right struct {
	Verb string
	// Version is empty for all versions of the group.
	Group, Version, Resource, Subresource string
	// Namespace and Name identify the object, as in a SubjectAccessReview. An empty name means all
	// objects. An empty namespace means all namespaces, or a cluster-scoped object.
	Namespace, Name string
	Path            string
}

// On returns the right to a verb on one object; an empty name means all objects.
func On(resource schema.GroupVersionResource, verb, namespace, name string) Right {
	return Right{Verb: verb, Group: resource.Group, Version: resource.Version, Resource: resource.Resource, Namespace: namespace, Name: name}
}

// String returns the right as text: "create deployments.apps lighthouse/web".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	var b strings.Builder
	b.WriteString(r.Verb + " " + r.Resource)
	if r.Subresource != "" {
		b.WriteString("/" + r.Subresource)
	}
	if r.Group != "" {
		b.WriteString("." + r.Group)
	}
	switch {
	case r.Name != "" && r.Namespace != "":
		b.WriteString(" " + r.Namespace + "/" + r.Name)
	case r.Name != "":
		b.WriteString(" " + r.Name)
	case r.Namespace != "":
		b.WriteString(" in namespace " + r.Namespace)
	}
	return b.String()
}

// Of returns the attributes for an authorizer, which decides whether a user has the right.
func (r Right) Of(who user.Info) authorizer.AttributesRecord {
	if r.Path != "" {
		return authorizer.AttributesRecord{User: who, Verb: r.Verb, Path: r.Path}
	}
	return authorizer.AttributesRecord{
		User: who, ResourceRequest: true, Verb: r.Verb, APIGroup: r.Group, APIVersion: r.version(), Resource: r.Resource,
		Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
	}
}

// Attributes returns the attributes for an access review. The right must not be on a path.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Version: r.version(), Resource: r.Resource,
		Subresource: r.Subresource, Namespace: r.Namespace, Name: r.Name,
	}
}

func (r Right) version() string { return cmp.Or(r.Version, "*") }

// Has asks an authorizer whether a user has the right. An error means that the answer is unknown. As
// in kube-apiserver, the "allowed" of one authorizer is enough.
func (r Right) Has(ctx context.Context, by authorizer.UnconditionalAuthorizer, who user.Info) (bool, error) {
	decision, _, err := by.Authorize(ctx, r.Of(who))
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	return false, err
}

// Unknown returns the answer to a request whose user's rights are unknown because of an error of
// Has: 503, after which clients retry.
func Unknown(err error) error {
	return apierrors.NewServiceUnavailable(fmt.Sprintf("your rights cannot be checked at the moment: %s", err))
}
