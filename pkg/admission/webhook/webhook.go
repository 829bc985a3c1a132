// Package webhook answers the host's admission reviews for kinds that the host serves. Admission
// plugins check the kinds that Penstock serves.
//
// kube-apiserver sends no credentials, so every client that reaches the port can send a review.
// Therefore an answer depends only on the review and reveals nothing else, and the size of a request
// is checked before it is read.
//
// A webhook whose answer could be misused is Authenticated: kube-apiserver sends its review to itself,
// and its aggregation layer forwards the review to Penstock with its credentials, like a request for
// Penstock's API. Conditions about rights are in the matchConditions of a registration. The host
// evaluates these without a call.
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

// Webhook is a decision function and its registration with the host.
type Webhook struct {
	// Name is the last part of the path, and the name in metrics.
	Name string
	// Judge returns the reason for refusing a write, or "" to allow it. It is a function of the
	// review.
	Judge func(Review) string
	// Decide is set in place of Judge if the answer needs more than a reason. Only Decide can
	// change the object.
	Decide func(context.Context, Review) Answer
	// Mutating is true if Decide may change the object.
	Mutating bool
	// Authenticated is true if only kube-apiserver may call the webhook. Its path is then within
	// Penstock's API.
	Authenticated bool
	// Registration selects the requests for which the host calls the webhook.
	Registration Registration
}

// authenticatedPrefix begins the paths of webhooks that only kube-apiserver may call. The host's
// aggregation layer forwards requests for our group.
const authenticatedPrefix = "/apis/olm.operatorframework.io/v1alpha1/webhooks/"

// Path returns the URL path of the webhook on Penstock's server.
func (w Webhook) Path() string {
	if w.Authenticated {
		return authenticatedPrefix + w.Name
	}
	return "/webhooks/" + w.Name
}

// IsOurs reports whether a webhook's service reference is that of kube-apiserver with a path of
// Penstock.
func IsOurs(service *admissionregistrationv1.ServiceReference) bool {
	return service != nil && service.Namespace == metav1.NamespaceDefault && service.Name == hostService &&
		service.Path != nil && strings.HasPrefix(*service.Path, authenticatedPrefix)
}

// Answer is the decision about a write.
type Answer struct {
	// Refusal is the reason for denying the write; nil allows it.
	Refusal *metav1.Status
	// Annotations to set on the object. An annotation with a nil value is removed.
	Annotations map[string]*string
	// Warnings for the user who writes.
	Warnings []string
}

// Refuse returns the answer that forbids a write.
func Refuse(reason string) Answer {
	return Answer{Refusal: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: reason,
	}}
}

func (w Webhook) decide(ctx context.Context, r Review) Answer {
	if w.Decide != nil {
		return w.Decide(ctx, r)
	}
	if reason := w.Judge(r); reason != "" {
		return Refuse(reason)
	}
	return Answer{}
}

// Registration has the settings of a webhook at the host, except for its address.
type Registration struct {
	Rules         []admissionregistrationv1.RuleWithOperations
	Conditions    []admissionregistrationv1.MatchCondition
	FailurePolicy admissionregistrationv1.FailurePolicyType
	// NamespaceLabel must be "true" on the namespace of an object; empty means any namespace.
	NamespaceLabel string
	// ObjectLabel must be on the old or the new object; empty means any object.
	ObjectLabel string
	// TimeoutSeconds is the longest time that the host waits for an answer.
	TimeoutSeconds int32
	// Again is true if the host calls the webhook again after other webhooks have changed the
	// object.
	Again bool
}

// Review has the facts of a write.
type Review struct {
	Operation   admissionv1.Operation
	Group, Kind string
	Namespace   string
	Name        string
	SubResource string
	// Object is the written object, nil for a deletion. Old is the stored object, nil for a
	// creation.
	Object, Old *Object
	// User is the user that kube-apiserver authenticated.
	User authenticationv1.UserInfo
	// ObjectJSON and OldJSON are the complete objects. They are set for an Authenticated webhook
	// only.
	ObjectJSON, OldJSON []byte
}

// Info returns the user for access reviews.
func (r Review) Info() user.Info {
	extra := map[string][]string{}
	for key, values := range r.User.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: r.User.Username, UID: r.User.UID, Groups: r.User.Groups, Extra: extra}
}

// String names the object in messages: "ConfigMap default/settings".
func (r Review) String() string {
	kind := r.Kind
	if r.Group != "" {
		kind += "." + r.Group
	}
	return strings.TrimSpace(kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}
