package chartkind

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/mapping"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// scope is one pass over one custom resource. It has the generation that was read at its beginning.
type scope struct {
	*served
	maker.Chain
	key    string
	object *unstructured.Unstructured
	// paused is true if the custom resource requests no revisions.
	paused bool
	values map[string]any
	// digest is the digest of the inputs for the newest revision.
	digest string
	// diff has the changes that the next revision would make, if it is reviewed.
	diff *olmv1alpha1.RevisionDiff
}

// irreconcilable ends a pass until an input changes: no revision can be created.
func irreconcilable(format string, args ...any) *maker.Outcome {
	return maker.Stop("Irreconcilable", fmt.Sprintf(format, args...), "")
}

func retry(err error) *maker.Outcome { return maker.Retry(maker.Failed, err) }

// pass reconciles one custom resource:
//
//  1. It reads the custom resource, and does nothing while that is unknown.
//  2. If the custom resource is being deleted, it deletes the revisions.
//  3. It adds the finalizer that keeps the custom resource until then.
//  4. It creates the next revision, or finds the reason for none.
//  5. It writes this loop's part of the status.
func (s *served) pass(ctx context.Context, key string) error {
	if !s.isKnown() {
		return nil
	}
	object, known := objectwatch.Find[*unstructured.Unstructured](s.resources, key)
	if !known || object == nil {
		s.forget(key)
		return nil
	}
	p := &scope{served: s, Chain: s.chainOf(), key: key, object: object, paused: object.GetAnnotations()[chartkind.PausedAnnotation] == "true"}
	if object.GetDeletionTimestamp() != nil {
		return p.leave(ctx)
	}
	if !p.paused && !slices.Contains(object.GetFinalizers(), chartkind.Finalizer) {
		if err := applyFinalizers(ctx, s.account, s.spec.Resource, object, []string{chartkind.Finalizer}); err != nil {
			s.noteRefusal(err)
			return fmt.Errorf("keeping %s until the objects installed for it are deleted: %w", p, err)
		}
		return nil // the watch will report it
	}
	outcome := p.advance(ctx)
	return outcome.End(ctx, p.String(), func() error {
		if outcome.Reason == maker.Failed {
			return nil // the next attempt writes the status
		}
		return p.writeStatus(ctx, p.came(outcome))
	})
}

// chainOf returns a chain of the ChartKind. Its ServiceAccount writes the revisions and the
// proposals.
func (s *served) chainOf() maker.Chain {
	return maker.Chain{Store: s.Store, Proposer: s.as(), Rules: maker.Rules{FieldManager: FieldManager, MadeOf: chartkind.MadeOfAnnotation, NeverApproved: neverApproved}}
}

func (s *scope) String() string { return s.spec.Resource.Kind + " " + s.key }

// advance creates the next revision, or returns the reason for none:
//
//  1. It finds the extension of the custom resource, and its revisions.
//  2. It compares the inputs with those of the newest revision. If they are equal, nothing is
//     rendered.
//  3. Package maker creates the next revision or a proposal.
func (s *scope) advance(ctx context.Context) *maker.Outcome {
	var err error
	if s.Name, err = s.mapping.Extension(ctx, s.object); err != nil {
		return irreconcilable("%s", err)
	}
	if stopped := s.findRevisions(ctx); stopped != nil {
		return stopped
	}
	s.remember()
	if s.paused {
		return maker.Stop(maker.Current, "", "")
	}
	inputs := s.known(s.object)
	if s.values, err = s.mapping.Values(ctx, s.object, inputs); err != nil {
		return irreconcilable("%s", err)
	}
	made := mapping.MadeOf{Chart: s.chart.Reference, Release: s.object.GetName(), Namespace: s.namespaceOf(s.object), Values: s.values, Inputs: inputs, GeneratedSecrets: s.spec.GeneratedSecrets}
	if s.digest, err = made.Digest(); err != nil {
		return irreconcilable("%s", err)
	}
	return maker.Make(ctx, &s.Chain, s.digest, false, s, s)
}

// findRevisions reads the revisions of the extension. It stops if they have another owner.
func (s *scope) findRevisions(ctx context.Context) *maker.Outcome {
	name, revisions, err := s.named(ctx, s.Name, s.object)
	if err != nil {
		return maker.Unread(err)
	}
	s.Name = name
	ours, others := false, false
	for i := range revisions {
		uid := revisions[i].Annotations[chartkind.UIDAnnotation]
		mine := s.isOurs(&revisions[i], s.object)
		ours = ours || mine
		if !mine && (uid != "" || !maker.IsRollback(&revisions[i])) {
			others = true
		}
	}
	switch {
	case others && !ours:
		// The message does not name the owner, which may be in a namespace of another tenant.
		return irreconcilable("extension %s has revisions of another owner: wait until they are deleted, or let spec.extension of ChartKind %s make another name", s.Name, s.name)
	case !ours:
		if stopped := s.hasOtherExtension(ctx); stopped != nil {
			return stopped
		}
	case others:
		return irreconcilable("extension %s has a revision of another owner: delete that revision", s.Name)
	}
	s.Revisions = revisions
	return nil
}

// isOurs reports whether a revision was made from a custom resource, or from an earlier one with
// the same name. The earlier one was removed without its finalizer, or this one was restored from a
// backup.
func (s *served) isOurs(one *olmv1alpha1.ClusterExtensionRevision, object *unstructured.Unstructured) bool {
	if one.Annotations[chartkind.UIDAnnotation] == string(object.GetUID()) {
		return true
	}
	key, err := cache.MetaNamespaceKeyFunc(object)
	return err == nil && one.Annotations[chartkind.ResourceAnnotation] == s.name+"/"+key
}

// isOf reports whether any of the revisions was made from a custom resource.
func (s *served) isOf(revisions []olmv1alpha1.ClusterExtensionRevision, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool { return s.isOurs(&one, object) })
}

// hasOtherExtension returns an outcome if the custom resource is already installed under another name. A
// second extension would conflict with the first, and the first would never be removed.
func (s *scope) hasOtherExtension(ctx context.Context) *maker.Outcome {
	others, err := s.elsewhere(ctx, s.object, s.Name)
	if err != nil {
		return retry(err)
	}
	if len(others) == 0 {
		return nil
	}
	return irreconcilable("it is installed as extension %s, but its extension would be %s now: restore the fields that spec.extension of ChartKind %s reads, or delete the custom resource and create it again", others[0], s.Name, s.name)
}

// elsewhere returns the extensions of an installed custom resource, except one. It reads them from
// the revisions, which record their custom resource, so that changes of the names do not matter.
func (s *served) elsewhere(ctx context.Context, object *unstructured.Unstructured, but string) ([]string, error) {
	var all olmv1alpha1.ClusterExtensionRevisionList
	if err := s.Reader.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading as which extensions %s %s/%s is installed: %w", object.GetKind(), object.GetNamespace(), object.GetName(), err)
	}
	var found []string
	for i := range all.Items {
		one := &all.Items[i]
		if name := one.Labels[olmv1alpha1.ChainLabel]; name != but && s.isOurs(one, object) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// as returns the ServiceAccount as kube-apiserver authenticates it.
func (s *served) as() user.Info {
	return serviceaccount.UserInfo(s.spec.ServiceAccount.Namespace, s.spec.ServiceAccount.Name, "")
}

// remember records the custom resource of the extension. Earlier changes of its workloads caused no
// look, because the extension was unknown.
func (s *scope) remember() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.chains[s.Name] != s.key {
		s.chains[s.Name] = s.key
		s.looks.Add(s.key)
	}
}

func (s *served) forget(key string) {
	s.jobs.Forget(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.expected, key)
	delete(s.settling, key)
	delete(s.told, key)
	for chain, of := range s.chains {
		if of == key {
			delete(s.chains, chain)
		}
	}
}

// neverApproved reports whether a revision was created Paused and was never rolled out: it waits,
// or a user declined it by archiving it. Each step changes its generation.
func neverApproved(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	switch {
	case revision.Annotations[chartkind.MadeOfAnnotation] == "":
		return false
	case revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused:
		return revision.Generation <= 1
	}
	return revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived && revision.Generation <= 2 && !maker.HasSucceeded(revision) &&
		!slices.ContainsFunc(revision.Status.Phases, func(phase olmv1alpha1.PhaseStatus) bool { return phase.StartedAt != nil })
}

// failureOf returns the reason why a rollout does not continue; empty if it continues or has
// succeeded.
func failureOf(revision *olmv1alpha1.ClusterExtensionRevision) string {
	if maker.HasSucceeded(revision) {
		return ""
	}
	for _, kind := range []string{olmv1alpha1.ConditionStalled, olmv1alpha1.ConditionFailing} {
		if found := meta.FindStatusCondition(revision.Status.Conditions, kind); found != nil && found.Status == metav1.ConditionTrue {
			return fmt.Sprintf("%s: %s: %s", revision.Name, found.Reason, found.Message)
		}
	}
	return ""
}

// came returns the result of a pass for the status.
func (s *scope) came(outcome *maker.Outcome) report.Pass {
	p := report.Pass{Kind: s.spec.Resource.Kind, Name: s.object.GetName(), Generation: s.object.GetGeneration(), Paused: s.paused}
	switch outcome.Reason {
	case maker.Current:
	case maker.Held, maker.Proposed:
		p.Waiting = outcome.Message
	default:
		p.Irreconcilable = outcome.Message
	}
	newest := s.Newest()
	if newest == nil {
		return p
	}
	p.Rollout = &report.Rollout{
		Revision: newest.Name, Version: newest.Annotations[olmv1alpha1.VersionAnnotation], Notes: newest.Annotations[chartkind.NotesAnnotation],
		First: (newest.Spec.Revision == 1 || len(s.Revisions) > 1) && !slices.ContainsFunc(s.Revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool {
			return one.Spec.Revision < newest.Spec.Revision && maker.HasSucceeded(&one)
		}),
		Succeeded: maker.HasSucceeded(newest), Failure: failureOf(newest),
	}
	return p
}

// writeStatus writes this loop's part of the status if it changed.
func (s *scope) writeStatus(ctx context.Context, p report.Pass) error {
	stored := report.StatusOf(s.object)
	next := report.Reconciled(p, stored, metav1.NewTime(s.Clock.Now()))
	if next.ObservedGeneration == stored.ObservedGeneration && next.ReconciledVersion == stored.ReconciledVersion && report.Same(stored, next.Conditions) {
		return nil
	}
	fields := map[string]any{"conditions": conditionFields(next.Conditions)}
	if next.ObservedGeneration != 0 {
		fields["observedGeneration"] = next.ObservedGeneration
	}
	if next.ReconciledVersion != "" {
		fields["reconciledVersion"] = next.ReconciledVersion
	}
	_, err := s.applyStatus(ctx, s.object, FieldManager, fields)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
