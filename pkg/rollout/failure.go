package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/text"
)

type bodyError struct {
	ref manifest.Ref
	err error
}

func (e *bodyError) Error() string {
	return fmt.Sprintf("reading the manifest of %s (%s): %s", e.ref.ID, e.ref.Digest, e.err.Error())
}

func (e *bodyError) Unwrap() error { return e.err }

// conclude merges the result of an object into the pass: it classifies an error and schedules the
// next try.
func (p *pass) conclude(ctx context.Context, o *object, result *objectResult) {
	id := o.step.ID
	if result.err != nil {
		result.outcome = outcome{failure: Classify(o.step.Ref, result.err)}
		p.definedLater(ctx, o, result.failure)
	}
	if targetclient.IsOvertaken(result.err) {
		p.again(p.memory.lag(id, p.engine.Clock.Now(), p.engine.Jitter))
	}
	p.events = append(p.events, result.events...)
	if result.repair != nil {
		p.repair(*result.repair)
	}
	if result.entry != nil {
		p.record(id, *result.entry)
	}
	if result.dropped {
		p.drop(id)
	}
	if result.existing != "" {
		p.memory.existing[id] = result.existing
	}
	if result.reread || apierrors.IsNotFound(result.err) {
		delete(p.memory.found, id)
	}
	if result.found != nil {
		p.memory.found[id] = *result.found
	}
	if result.failure != nil && result.failure.Reason == ReasonCollision && (result.hidden || result.seen.Chain == "") {
		p.hide(id)
	}
	if result.applied || result.dropped {
		p.memory.done(o.step.Ref)
	}
	if result.deleted != nil {
		p.memory.deleted[id] = deletion{*result.deleted, p.engine.Clock.Now().Add(lastRetry)}
	}
	if result.version != "" && !result.dropped {
		p.memory.versions[id] = result.version
	}
	if result.looked {
		p.memory.looked(id, p.engine.Clock.Now())
	}
	if result.lost != "" {
		p.memory.lost(id, result.lost)
	}
	p.again(result.wait)
	p.noteRefusal(o, result)
	if result.failure != nil {
		p.schedule(o, *result)
	}
}

// definedLater completes the failure of an object whose kind is not served, if the revision defines
// the kind in a later stage, which waits for this object. It reads the definition's manifest,
// because its name has only the plural of the kind.
func (p *pass) definedLater(ctx context.Context, o *object, failure *Failure) {
	if failure.Reason != ReasonNotServed || o.layer < 0 {
		return
	}
	stages := p.Layers[o.layer].Stages
	for _, later := range stages[min(o.stage+1, len(stages)):] {
		for _, step := range later.Steps {
			if !step.DefinesKindsOf(o.step.Group) {
				continue
			}
			raw, err := p.Bodies.Body(ctx, step.Ref)
			if err != nil {
				continue // the object's own failure is reported anyway
			}
			if kind, err := (manifest.Object{JSON: raw}).DefinedKind(); err == nil && kind == o.step.GroupVersionKind().GroupKind() {
				failure.Reason, failure.NeedsPerson = ReasonDefinedLater, true
				failure.Message += fmt.Sprintf("; its definition, %s, is in the later phase %q of this revision, which waits for this object", step.ID, later.Phase)
				return
			}
		}
	}
}

// hide watches a colliding object by name, because no other watch reports its deletion. Another
// chain's watch by name does not wake this chain. Each watch by name is a connection, so above
// maxHidden the engine polls instead.
func (p *pass) hide(id manifest.ID) {
	if p.memory.hidden[id] || len(p.memory.hidden) < maxHidden {
		p.memory.hidden[id] = true
		return
	}
	p.again(lastRetry)
}

// schedule sets the time of the next try for an object that failed.
func (p *pass) schedule(o *object, result objectResult) {
	if result.watching {
		p.again(settleFallback)
		return
	}
	if result.protected {
		// The engine does not watch the label of the namespace, so it must poll.
		p.memory.retry(o.step.Ref, o.attempt(result.seen), *result.failure, p.engine.Clock.Now(), p.engine.Jitter)
	}
	switch result.failure.Reason {
	case ReasonCollision, ReasonPaused, ReasonFrozen, ReasonContested, ReasonDriftReported:
		// An event ends these states: the watch of the other object, the caller's resume, or the
		// time of a contested object. A protected object is tried again by time.
		if result.protected || result.backedOff {
			p.due(p.memory.failed[o.step.Ref].until)
		}
	case ReasonDrifted, ReasonStale:
		// A check of an unchanged object gives the same result. It is still repeated, so that no
		// cached finding lasts as long as the process.
		if !result.backedOff {
			p.memory.settle(o.step.Ref, o.attempt(result.seen), *result.failure, p.engine.Clock.Now())
		}
		p.due(p.memory.failed[o.step.Ref].until)
	case ReasonWaiting, ReasonTerminating:
		p.again(settleFallback)
	default:
		if !result.backedOff {
			p.memory.retry(o.step.Ref, o.attempt(result.seen), *result.failure, p.engine.Clock.Now(), p.engine.Jitter)
		}
		p.due(p.memory.failed[o.step.Ref].until)
	}
}

// isWebhookFailure reports whether the API server could not call an admission webhook, or could not
// read its answer (k8s.io/apiserver, pkg/admission/plugin/webhook/errors).
func isWebhookFailure(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && apierrors.IsInternalError(err) && strings.Contains(answer.Status().Message, "failed calling webhook")
}

// Classify returns the failure for an error of a write.
func Classify(ref manifest.Ref, err error) *Failure {
	failure := &Failure{Ref: ref, Message: Explain(ref, err)}
	if failure.Immutable = isUnchangeable(err); failure.Immutable {
		failure.Message += "; " + remedy(ref)
	}
	var scope *targetclient.ScopeError
	var body *bodyError
	switch {
	case errors.As(err, &body):
		failure.Reason, failure.NeedsPerson = ReasonMissingBody, true
	case errors.As(err, &scope):
		failure.Reason, failure.NeedsPerson = ReasonRejected, true
	case meta.IsNoMatchError(err):
		failure.Reason = ReasonNotServed
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		failure.Reason = ReasonRejected // until the namespace is deleted
	case targetclient.IsOvertaken(err):
		failure.Reason = ReasonWaiting // it changed twice during the write: the next event finds it settled
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsUnsupportedMediaType(err), isSchemaError(err):
		failure.Reason, failure.NeedsPerson = ReasonRejected, true
	case isWebhookFailure(err):
		failure.Reason = ReasonRejected // the cluster answered; the webhook may answer later
	default:
		failure.Reason = ReasonUnreachable
	}
	failure.Refused = failure.Reason != ReasonWaiting && isRefusal(err)
	return failure
}

// isRefusal reports whether the server refused the request. A missing answer is no refusal, and a
// request to try later is none.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	return meta.IsNoMatchError(err) || errors.As(err, &answer) && !apierrors.IsTooManyRequests(err)
}

// isSchemaError recognises a manifest with fields that its kind does not have: server-side apply
// answers with a 500.
func isSchemaError(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), redact.SchemaError)
}

// Explain returns an error as text for status. It omits the name of the object where possible,
// because status shows the name beside it. For Secrets, it removes hidden content, for clients that
// do not.
func Explain(ref manifest.Ref, err error) string {
	var body *bodyError
	var scope *targetclient.ScopeError
	if !errors.As(err, &body) && !errors.As(err, &scope) {
		var secretsOnly *redact.Redactor
		err = secretsOnly.Error(ref.ID, err)
	}
	var lost *kubeconfig.LostError
	if errors.As(err, &lost) {
		return lost.Error() // the failed request does not matter
	}
	var discovery *targetclient.DiscoveryError
	if errors.As(err, &discovery) {
		return discovery.Error() // unlike the API server's answer, it names the cause
	}
	var gone *targetclient.VersionGoneError
	if errors.As(err, &gone) {
		return gone.Error()
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Message != "" {
		// The message says why the object was refused; status shows it beside the object's name.
		return briefly(answer.Status())
	}
	return err.Error()
}

const (
	// refusalBytes is the length up to which a server's answer is reported unchanged. For a longer
	// answer, maxCauses causes are reported with causeBytes each.
	refusalBytes = 320
	causeBytes   = 200
	maxCauses    = 3
)

// briefly shortens a server's message. It cuts long values in the middle, so that the field before
// and the reason after a value stay.
func briefly(status metav1.Status) string {
	// Since Kubernetes 1.37, the message of the storage begins with the object that it could not
	// read.
	if _, cause, found := strings.Cut(status.Message, "AdditionalErrorMsg: "); found {
		status.Message, status.Details = cause, nil
	}
	if len(status.Message) <= refusalBytes {
		return status.Message
	}
	if status.Details == nil || len(status.Details.Causes) == 0 {
		return text.Middle(status.Message, refusalBytes)
	}
	causes := status.Details.Causes
	var parts []string
	for _, cause := range causes[:min(len(causes), maxCauses)] {
		part := text.Middle(cause.Message, causeBytes)
		if cause.Field != "" {
			part = cause.Field + ": " + part
		}
		parts = append(parts, part)
	}
	if more := len(causes) - maxCauses; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}
