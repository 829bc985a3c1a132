// Package right is one thing that may be done: a verb on a resource. Whoever asks about
// rights, the host or an authorizer, asks with the same type.
package right

import (
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Right is a verb on a resource, or on one object of it.
type Right struct {
	Verb, Group, Version, Resource string
	// Namespace and Name of the object; both are empty for all objects.
	Namespace, Name string
}

// String spells it as a rule that an administrator can grant. The namespace is left out.
func (r Right) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	return strings.TrimSuffix(r.Verb+" "+resource+" "+r.Name, " ")
}

// Of is the question whether somebody has the right, for an authorizer.
func (r Right) Of(who user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, ResourceRequest: true, Verb: r.Verb, APIGroup: r.Group, APIVersion: r.Version, Resource: r.Resource,
		Namespace: r.Namespace, Name: r.Name,
	}
}

// Attributes are for an access review.
func (r Right) Attributes() *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Namespace: r.Namespace, Name: r.Name,
	}
}
