// Package webhook answers the host's admission reviews of kinds that the host serves. Plugins check
// our own kinds.
//
// kube-apiserver sends no credentials, so every client that reaches the port may ask. So an answer
// depends only on the review and reveals nothing else, and the size of a request is checked before
// it is read.
//
// A webhook with a valuable answer is Authenticated: kube-apiserver sends its review to itself, and
// its aggregation layer forwards the review to us with its credentials, like a request for our API.
// Conditions about rights are in the matchConditions of a registration. The host evaluates these
// and does not ask us.
package webhook

import (
	"context"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Webhook is one judge and where it is heard.
type Webhook struct {
	// Name is the last part of its path, and its name in metrics.
	Name string
	// Judge returns why a write is refused; "" admits it. It is a function of the
	// review.
	Judge func(Review) string
	// Decide is in place of Judge where more than one reason is to be said, and the only
	// one that may change the object.
	Decide func(context.Context, Review) Answer
	// Mutating is true when Decide may change the object.
	Mutating bool
	// Authenticated is true when only kube-apiserver may call the webhook. Its path is then within
	// Penstock's API.
	Authenticated bool
	// Rules, conditions and the other fields select the requests for which the host calls the webhook.
	Registration Registration
}

// authenticatedPrefix begins the paths of webhooks that only kube-apiserver may ask. The
// host's aggregation layer sends us what is asked of our group.
const authenticatedPrefix = "/apis/olm.operatorframework.io/v1alpha1/webhooks/"

// Path returns the URL path of the webhook on Penstock's server.
func (w Webhook) Path() string {
	if w.Authenticated {
		return authenticatedPrefix + w.Name
	}
	return "/webhooks/" + w.Name
}

// IsOurs reports whether a webhook's service reference is that of kube-apiserver, through which the
// host calls Penstock.
func IsOurs(service *admissionregistrationv1.ServiceReference) bool {
	return service != nil && service.Namespace == metav1.NamespaceDefault && service.Name == hostService &&
		service.Path != nil && strings.HasPrefix(*service.Path, authenticatedPrefix)
}

// Answer is the decision about a write.
type Answer struct {
	// Refusal is the reason for denying the write; nil allows it.
	Refusal *metav1.Status
	// Annotations are set, and those that are nil removed.
	Annotations map[string]*string
	// Warnings are shown to the user who writes.
	Warnings []string
}

// Refuse is the answer to a write that is forbidden.
func Refuse(reason string) Answer {
	return Answer{Refusal: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: reason,
	}}
}

// decide calls the webhook.
func (w Webhook) decide(ctx context.Context, r Review) Answer {
	if w.Decide != nil {
		return w.Decide(ctx, r)
	}
	if reason := w.Judge(r); reason != "" {
		return Refuse(reason)
	}
	return Answer{}
}

// Registration has the facts that the host needs of a webhook, besides its address.
type Registration struct {
	Rules         []admissionregistrationv1.RuleWithOperations
	Conditions    []admissionregistrationv1.MatchCondition
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// NamespaceLabel must be "true" on the namespace of an object; empty is any.
	NamespaceLabel string
	// ObjectLabel must be on the object as it is or as it shall be; empty is any.
	ObjectLabel string
	// TimeoutSeconds limits the time for which the host waits for an answer.
	TimeoutSeconds int32
	// Again is true when the host calls the webhook again after other webhooks changed the object.
	Again bool
}

// Review has the facts of a write for a judge.
type Review struct {
	Operation   admissionv1.Operation
	Group, Kind string
	Namespace   string
	Name        string
	SubResource string
	// Object is the written object, nil for a deletion, and Old the present object, nil for a
	// creation.
	Object, Old *Object
	// User is the user that kube-apiserver authenticated.
	User authenticationv1.UserInfo
	// ObjectJSON and OldJSON are Object and Old whole, of an Authenticated webhook only.
	ObjectJSON, OldJSON []byte
}

// Info is User, for access reviews.
func (r Review) Info() user.Info {
	extra := map[string][]string{}
	for key, values := range r.User.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: r.User.Username, UID: r.User.UID, Groups: r.User.Groups, Extra: extra}
}

// String names the object as people do: "ConfigMap default/settings".
func (r Review) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return strings.TrimSpace(kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}
