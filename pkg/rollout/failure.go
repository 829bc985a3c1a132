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

// bodyError is a manifest that could not be read from where it is kept.
type bodyError struct {
	ref manifest.Ref
	err error
}

func (e *bodyError) Error() string {
	return fmt.Sprintf("reading the manifest of %s (%s): %s", e.ref.ID, e.ref.Digest, e.err.Error())
}

func (e *bodyError) Unwrap() error { return e.err }

// conclude merges what became of an object into the pass: the error becomes a failure,
// and a failure gets its time for the next try.
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

// definedLater says of an object whose kind is not served that its own revision has the definition
// in a later stage, which waits for this one. The manifest of the definition names the kind; its
// name has the plural, which does not follow from the kind.
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
				continue // the failure of the object itself is reported in any case
			}
			if kind, err := (manifest.Object{JSON: raw}).DefinedKind(); err == nil && kind == o.step.GroupVersionKind().GroupKind() {
				failure.Reason, failure.NeedsPerson = ReasonDefinedLater, true
				failure.Message += fmt.Sprintf("; its definition, %s, is in the later phase %q of this revision, which waits for this object", step.ID, later.Phase)
				return
			}
		}
	}
}

// hide has a colliding object watched by name: nothing else tells when it goes, not even
// the watch of somebody else who has it watched by name and shows it.
// Each such watch is a connection, so beyond some of them time has to tell.
func (p *pass) hide(id manifest.ID) {
	if p.memory.hidden[id] || len(p.memory.hidden) < maxHidden {
		p.memory.hidden[id] = true
		return
	}
	p.again(lastRetry)
}

// schedule decides when an object that failed is tried again.
func (p *pass) schedule(o *object, result objectResult) {
	if result.watching {
		p.again(settleFallback)
		return
	}
	if result.protected {
		// Nobody watches the label of the namespace.
		p.memory.retry(o.step.Ref, o.attempt(result.seen), *result.failure, p.engine.Clock.Now(), p.engine.Jitter)
	}
	switch result.failure.Reason {
	case ReasonCollision, ReasonPaused, ReasonFrozen, ReasonContested, ReasonDriftReported:
		// The other object is being watched, a pause is ended by the caller, and
		// a contested object has its own time. One that is protected is tried again.
		if result.protected || result.backedOff {
			p.due(p.memory.failed[o.step.Ref].until)
		}
	case ReasonDrifted, ReasonStale:
		// The same object is judged the same. All the same it is looked at again one day:
		// nothing that is remembered may last as long as the process.
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

// isWebhookFailure reports whether the cluster answered that an admission webhook did not answer,
// or not as one does (k8s.io/apiserver, pkg/admission/plugin/webhook/errors).
func isWebhookFailure(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && apierrors.IsInternalError(err) && strings.Contains(answer.Status().Message, "failed calling webhook")
}

// Classify returns the failure for an error of an object's write.
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
		failure.Reason = ReasonRejected // until the namespace is gone
	case targetclient.IsOvertaken(err):
		failure.Reason = ReasonWaiting // it changed twice while we looked: the next event finds it settled
	case apierrors.IsNotFound(err), apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err),
		apierrors.IsUnauthorized(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err),
		apierrors.IsUnsupportedMediaType(err), isSchemaError(err):
		failure.Reason, failure.NeedsPerson = ReasonRejected, true
	case isWebhookFailure(err):
		failure.Reason = ReasonRejected // the cluster has answered; the webhook may do so later
	default:
		failure.Reason = ReasonUnreachable
	}
	failure.Refused = failure.Reason != ReasonWaiting && isRefusal(err)
	return failure
}

// isRefusal tells what the server said from that it said nothing, or asked for patience.
func isRefusal(err error) bool {
	var answer apierrors.APIStatus
	return meta.IsNoMatchError(err) || errors.As(err, &answer) && !apierrors.IsTooManyRequests(err)
}

// isSchemaError recognises a manifest with fields that its kind does not have:
// server-side apply answers those with a 500.
func isSchemaError(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), redact.SchemaError)
}

// Explain returns an error as text for status, without the name of the object, which is shown
// beside it, as far as possible. The client of the target has removed hidden content. For Secrets,
// Explain removes it once more, for clients that do not.
func Explain(ref manifest.Ref, err error) string {
	var body *bodyError
	var scope *targetclient.ScopeError
	if !errors.As(err, &body) && !errors.As(err, &scope) {
		var secretsOnly *redact.Redactor
		err = secretsOnly.Error(ref.ID, err)
	}
	var lost *kubeconfig.LostError
	if errors.As(err, &lost) {
		return lost.Error() // which request it was does not matter
	}
	var discovery *targetclient.DiscoveryError
	if errors.As(err, &discovery) {
		return discovery.Error() // which the answer of an API's server does not name
	}
	var gone *targetclient.VersionGoneError
	if errors.As(err, &gone) {
		return gone.Error()
	}
	var answer apierrors.APIStatus
	if errors.As(err, &answer) && answer.Status().Message != "" {
		// It says what was refused, and stands beside the object's name.
		return briefly(answer.Status())
	}
	return err.Error()
}

const (
	// refusalBytes is the length up to which a server's answer is reported unchanged. Of a longer
	// answer, maxCauses causes are reported with causeBytes each.
	refusalBytes = 320
	causeBytes   = 200
	maxCauses    = 3
)

// briefly returns a server's message, short, with its reason: a long value is removed, the field
// before it and the words behind it stay.
func briefly(status metav1.Status) string {
	// Since Kubernetes 1.37 the storage says first which object it could not read.
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
