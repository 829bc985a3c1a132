package privilege

import (
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// right is what somebody may do or not: one question to the cluster. An empty name
// means all objects, an empty namespace all of them or none, as in a
// SubjectAccessReview. A right on a path has a verb besides, and nothing else.
type right struct {
	verb                         string
	group, resource, subresource string
	namespace, name              string
	path                         string
}

// attributes is the question whether somebody has the right.
func (r right) attributes(who user.Info) authorizer.AttributesRecord {
	if r.path != "" {
		return authorizer.AttributesRecord{User: who, Verb: r.verb, Path: r.path}
	}
	return authorizer.AttributesRecord{
		User: who, Verb: r.verb, APIGroup: r.group, APIVersion: "*", Resource: r.resource, Subresource: r.subresource,
		Namespace: r.namespace, Name: r.name, ResourceRequest: true,
	}
}

// String is for people: "create deployments.apps lighthouse/web".
func (r right) String() string {
	if r.path != "" {
		return r.verb + " " + r.path
	}
	var b strings.Builder
	b.WriteString(r.verb)
	b.WriteByte(' ')
	b.WriteString(r.resource)
	if r.subresource != "" {
		b.WriteByte('/')
		b.WriteString(r.subresource)
	}
	if r.group != "" {
		b.WriteByte('.')
		b.WriteString(r.group)
	}
	switch {
	case r.name != "" && r.namespace != "":
		b.WriteString(" " + r.namespace + "/" + r.name)
	case r.name != "":
		b.WriteString(" " + r.name)
	case r.namespace != "":
		b.WriteString(" in namespace " + r.namespace)
	}
	return b.String()
}

// ask is a right that a change needs, and what for when the right does not say.
type ask struct {
	right
	// because names the object of the revision that hands the right on.
	because string
	// refusal is what no right helps with, in words, in place of a right.
	refusal string
	// shownTo is the right to read what this ask is about, as it tells it; none
	// when the requester brought it.
	shownTo right
}

// String is for the list of what is missing.
func (a ask) String() string {
	if a.refusal != "" {
		return a.refusal
	}
	if a.because == "" {
		return a.right.String()
	}
	return a.right.String() + " (" + a.because + ")"
}
