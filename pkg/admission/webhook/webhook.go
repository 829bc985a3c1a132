// Package webhook answers the host's admission reviews of kinds that we do not serve.
// Plugins check our own kinds.
//
// Whoever reaches our port may ask, because kube-apiserver sends no credentials. So an
// answer depends only on the review and reveals nothing else, and the size of a request
// is checked before it is read. Conditions about rights are in the matchConditions of a
// registration: the host evaluates those, and does not ask us.
package webhook

import (
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Webhook is one judge and where it is heard.
type Webhook struct {
	// Name is the last part of its path, and its name in metrics.
	Name string
	// Judge returns why a write is refused; "" admits it. It is a function of the
	// review.
	Judge func(Review) string
	// Rules, conditions and the rest say what it is asked about.
	Registration Registration
}

// Path is where a webhook is heard.
func (w Webhook) Path() string { return "/webhooks/" + w.Name }

// Registration is what the host needs to know of a webhook, besides where it is.
type Registration struct {
	Rules         []admissionregistrationv1.RuleWithOperations
	Conditions    []admissionregistrationv1.MatchCondition
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// NamespaceLabel must be "true" on the namespace of an object; empty is any.
	NamespaceLabel string
	// ObjectLabel must be on the object as it is or as it shall be; empty is any.
	ObjectLabel string
	// TimeoutSeconds is how long the host waits.
	TimeoutSeconds int32
}

// Review is what a judge is told of a write.
type Review struct {
	Operation   admissionv1.Operation
	Group, Kind string
	Namespace   string
	Name        string
	SubResource string
	// Object is what is written, nil for a deletion, and Old what is there, nil for
	// a creation.
	Object, Old *Object
}

// String names the object as people do: "ConfigMap default/settings".
func (r Review) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return strings.TrimSpace(kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}
