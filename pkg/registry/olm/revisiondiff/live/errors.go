package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// answer returns the error for the caller: 504 after a timeout; 503 if the cluster did not answer,
// or if Penstock lacks the rights to ask it.
func (l *Live) answer(ctx context.Context, err error) error {
	return l.answerFor(ctx, "what a rollout would change", err)
}

// answerFor works like answer, for a request that asks the question what.
func (l *Live) answerFor(ctx context.Context, what string, err error) error {
	unavailable := func(why string) error { return apierrors.NewServiceUnavailable(what + " now is not known: " + why) }
	var ours *apierrors.StatusError
	var review *reviewError
	var kinds *kindsError
	var rights *rightsError
	switch {
	case errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		return timedOut(fmt.Sprintf("the cluster has not answered within %s %s; select fewer objects with objectKind, objectNamespace or objectName", l.deps.Timeout, what))
	case errors.As(err, &ours) && ours.ErrStatus.Code == http.StatusServiceUnavailable:
		return unavailable(ours.ErrStatus.Message)
	case errors.As(err, &review), errors.As(err, &kinds), errors.As(err, &rights):
		return unavailable(err.Error())
	case errors.As(err, &ours) && ours.ErrStatus.Code == http.StatusForbidden:
		return unavailable(l.lacks("get"))
	case errors.As(err, &ours):
		return unavailable(ours.ErrStatus.Message)
	default:
		return unavailable(err.Error())
	}
}

func unavailable(why string) error {
	return apierrors.NewServiceUnavailable("what a rollout would change now is not known: " + why)
}

func timedOut(why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout, Message: why,
	}}
}

// rightsError reports that the reader lacks a right.
type rightsError struct{ message string }

func (e *rightsError) Error() string { return e.message }

// lacks explains how to grant a right that the reader lacks.
func (l *Live) lacks(verb string) string {
	return fmt.Sprintf("the reader identity %s cannot %s the objects to compare: %s", l.deps.Reader.GetName(), verb, l.deps.Role)
}

// ownRights returns an error if the reader lacks rights: then there is no answer. Other refusals of
// the cluster are part of the answer.
func (l *Live) ownRights(ctx context.Context, found preview.Preview) error {
	for i := range found.Items {
		item := &found.Items[i]
		if item.Err == nil || !apierrors.IsForbidden(item.Err) {
			continue
		}
		verbs := []string{"patch"}
		if !item.Exists {
			verbs = append(verbs, "create")
		}
		for _, verb := range verbs {
			allowed, err := l.readerMay(ctx, verb, item.Ref)
			if err != nil {
				return err
			}
			if !allowed {
				return &rightsError{l.lacks(verb)}
			}
		}
	}
	return nil
}

func (l *Live) readerMay(ctx context.Context, verb string, ref manifest.Ref) (bool, error) {
	mapping, err := l.deps.Kinds.Served(ctx, ref.GroupVersionKind())
	if err != nil {
		return false, &kindsError{err}
	}
	namespace := ref.Namespace
	if mapping.Scope != nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = metav1.NamespaceNone
	}
	return allows(ctx, l.deps.Authorizer, l.deps.Reader, authz.On(mapping.Resource, verb, namespace, ref.Name))
}
