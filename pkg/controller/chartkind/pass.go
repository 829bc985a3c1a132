package chartkind

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/mapping"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/bychain"
)

// visit is one pass over one custom resource. Its generation is that of the object as it was
// when the pass began.
type visit struct {
	*served
	key    string
	object *unstructured.Unstructured
	// extension is the chain, and revisions are those in it, newest first.
	extension string
	revisions []olmv1alpha1.ClusterExtensionRevision
	// wanted is what the newest revision should be made of, and values are those of the chart.
	wanted string
	values map[string]any
}

// halt is why a pass made no revision.
type halt struct {
	// irreconcilable says why there can be none until something changes, and waiting for what
	// the next one waits; both are empty when the newest one is what is asked for.
	irreconcilable, waiting string
	// again asks for another pass although nothing has changed.
	again bool
	// quiet leaves the status as it is: a watch brings the next pass.
	quiet bool
	// rendering is true while the chart is rendered: the result brings the next pass.
	rendering bool
	// err is told in the log.
	err error
}

func irreconcilable(format string, args ...any) *halt {
	return &halt{irreconcilable: fmt.Sprintf(format, args...)}
}

func retry(err error) *halt { return &halt{quiet: true, again: true, err: err} }

// pass brings one custom resource up to date:
//
//  1. The custom resource. Nothing is done while it is not known.
//  2. One that is being deleted takes its revisions with it.
//  3. It is kept until they are gone.
//  4. The next revision, or why there is none.
//  5. Our part of the status.
func (s *served) pass(ctx context.Context, key string) error {
	if !s.isKnown() {
		return nil
	}
	object, known := find(s.resources, key)
	if !known || object == nil {
		s.forget(key)
		return nil
	}
	v := &visit{served: s, key: key, object: object}
	if object.GetDeletionTimestamp() != nil {
		return v.leave(ctx)
	}
	paused := object.GetAnnotations()[chartkind.PausedAnnotation] == "true"
	if !paused && !slices.Contains(object.GetFinalizers(), chartkind.Finalizer) {
		if err := applyFinalizers(ctx, s.account, s.spec.Resource, object, []string{chartkind.Finalizer}); err != nil {
			s.noteRefusal(err)
			return fmt.Errorf("keeping %s until what is installed for it is gone: %w", v, err)
		}
		return nil // the watch brings it
	}
	outcome := v.advance(ctx, paused)
	if ctx.Err() != nil {
		return nil
	}
	if outcome.err != nil {
		klog.FromContext(ctx).Error(outcome.err, "No revision was made", "resource", v.String())
	}
	if !outcome.quiet {
		if err := v.writeStatus(ctx, v.came(outcome, paused)); err != nil {
			return err
		}
	}
	switch {
	case outcome.again:
		return errAgain
	case outcome.rendering:
		return errRendering
	}
	return nil
}

func (v *visit) String() string { return v.spec.Resource.Kind + " " + v.key }

// advance makes the next revision, or says why it does not:
//
//  1. The extension that the custom resource is, and its revisions.
//  2. What the newest one should be made of: as long as it is, nothing is rendered.
//  3. No rollback holds the extension.
//  4. The objects.
//  5. The next revision.
func (v *visit) advance(ctx context.Context, paused bool) *halt {
	var err error
	if v.extension, err = v.mapping.Extension(ctx, v.object); err != nil {
		return irreconcilable("%s", err)
	}
	if stopped := v.findRevisions(ctx); stopped != nil {
		return stopped
	}
	v.remember()
	if paused {
		return &halt{}
	}
	inputs := v.known(v.object)
	if v.values, err = v.mapping.Values(ctx, v.object, inputs); err != nil {
		return irreconcilable("%s", err)
	}
	made := mapping.MadeOf{Chart: v.chart.pinned, Release: v.object.GetName(), Namespace: v.namespaceOf(v.object), Values: v.values, Inputs: inputs, GeneratedSecrets: v.spec.GeneratedSecrets}
	if v.wanted, err = made.Digest(); err != nil {
		return irreconcilable("%s", err)
	}
	if newest := v.newest(); newest != nil && newest.Annotations[chartkind.MadeOfAnnotation] == v.wanted {
		return v.withdraw(ctx)
	}
	if proposed := v.proposal(); proposed != nil && proposed.Annotations[chartkind.MadeOfAnnotation] == v.wanted {
		return waiting(proposed.Name)
	}
	if stopped := v.held(ctx); stopped != nil {
		return stopped
	}
	rendered, stopped := v.render(ctx)
	if stopped != nil {
		return stopped
	}
	return v.create(ctx, rendered)
}

func waiting(revision string) *halt {
	return &halt{waiting: fmt.Sprintf("%s waits for approval: kubectl get cer %[1]s --subresource=diff, then kubectl penstock resume %[1]s", revision)}
}

// findRevisions reads the revisions of the extension. Those of somebody else are not touched.
func (v *visit) findRevisions(ctx context.Context) *halt {
	extension, revisions, err := v.named(ctx, v.extension, v.object)
	if err != nil {
		var unreadable *bychain.UnreadableError
		if errors.As(err, &unreadable) {
			return irreconcilable("%s", err)
		}
		return retry(err)
	}
	v.extension = extension
	ours, others := false, false
	for i := range revisions {
		uid := revisions[i].Annotations[chartkind.UIDAnnotation]
		mine := v.isOurs(&revisions[i], v.object)
		ours = ours || mine
		if !mine && (uid != "" || !isRollback(&revisions[i])) {
			others = true
		}
	}
	switch {
	case others && !ours:
		// Whose it is is not said: that may be in a namespace of another tenant.
		return irreconcilable("extension %s has revisions of another owner: wait until they are gone, or let spec.extension of ChartKind %s make another name", v.extension, v.name)
	case !ours:
		if stopped := v.isElsewhere(ctx); stopped != nil {
			return stopped
		}
	case others:
		return irreconcilable("extension %s has a revision of another owner: delete that revision", v.extension)
	}
	v.revisions = revisions
	return nil
}

// isOurs is whether a revision was made of a custom resource, or of one before it that had its name:
// that is gone, and was not let finish, or has come back from a backup.
func (s *served) isOurs(one *olmv1alpha1.ClusterExtensionRevision, object *unstructured.Unstructured) bool {
	if one.Annotations[chartkind.UIDAnnotation] == string(object.GetUID()) {
		return true
	}
	key, err := cache.MetaNamespaceKeyFunc(object)
	return err == nil && one.Annotations[chartkind.ResourceAnnotation] == s.name+"/"+key
}

// isOf is whether one of the revisions of a chain was made of a custom resource.
func (s *served) isOf(revisions []olmv1alpha1.ClusterExtensionRevision, object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool { return s.isOurs(&one, object) })
}

// isElsewhere says that a custom resource is installed already, by another name: as two extensions
// it would fight with itself, and the first one would be left behind.
func (v *visit) isElsewhere(ctx context.Context) *halt {
	others, err := v.elsewhere(ctx, v.object, v.extension)
	if err != nil {
		return retry(err)
	}
	if len(others) == 0 {
		return nil
	}
	return irreconcilable("it is installed as extension %s, but its extension would be %s now: restore the fields that spec.extension of ChartKind %s reads, or delete the custom resource and create it again", others[0], v.extension, v.name)
}

// elsewhere are the extensions that a custom resource is installed as, but one. They are read from
// the revisions themselves: those say of whom they are, whatever names are made of now.
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

// as is the ServiceAccount, as kube-apiserver authenticates it.
func (s *served) as() user.Info {
	return serviceaccount.UserInfo(s.spec.ServiceAccount.Namespace, s.spec.ServiceAccount.Name, "")
}

// remember notes of which custom resource the extension is. What happened to its workloads before
// that was known has woken nobody.
func (v *visit) remember() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.chains[v.extension] != v.key {
		v.chains[v.extension] = v.key
		v.looks.Add(v.key)
	}
}

// forget drops what is kept of a custom resource that is gone.
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

// newest is the newest revision that is to be rolled out, or was: proposals, and what was given
// up, are none. It is nil when there is none.
func (v *visit) newest() *olmv1alpha1.ClusterExtensionRevision { return newestOf(v.revisions) }

func newestOf(revisions []olmv1alpha1.ClusterExtensionRevision) *olmv1alpha1.ClusterExtensionRevision {
	for i := range revisions {
		one := &revisions[i]
		if isProposal(one) {
			continue
		}
		if one.DeletionTimestamp != nil || one.Spec.LifecycleState == olmv1alpha1.LifecycleStateArchived {
			return nil
		}
		return one
	}
	return nil
}

// proposal is the revision that waits for approval, or nil.
func (v *visit) proposal() *olmv1alpha1.ClusterExtensionRevision {
	for i := range v.revisions {
		if one := &v.revisions[i]; isProposal(one) && one.DeletionTimestamp == nil {
			return one
		}
	}
	return nil
}

// isProposal is whether a revision was made Paused, by us, and nobody has let it go on ever:
// that would be a change of its spec.
func isProposal(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[chartkind.MadeOfAnnotation] != "" && revision.Spec.LifecycleState == olmv1alpha1.LifecycleStatePaused && revision.Generation <= 1
}

func isRollback(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return revision.Annotations[olmv1alpha1.RollbackOfAnnotation] != ""
}

func hasSucceeded(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	return meta.IsStatusConditionTrue(revision.Status.Conditions, olmv1alpha1.ConditionSucceeded)
}

// failureOf says why a rollout does not go on; empty when it does, or has succeeded.
func failureOf(revision *olmv1alpha1.ClusterExtensionRevision) string {
	if hasSucceeded(revision) {
		return ""
	}
	for _, kind := range []string{olmv1alpha1.ConditionStalled, olmv1alpha1.ConditionFailing} {
		if found := meta.FindStatusCondition(revision.Status.Conditions, kind); found != nil && found.Status == metav1.ConditionTrue {
			return fmt.Sprintf("%s: %s: %s", revision.Name, found.Reason, found.Message)
		}
	}
	return ""
}

// held is a rollback that keeps the next revision from being made.
func (v *visit) held(ctx context.Context) *halt {
	newest := v.newest()
	if newest == nil || !isRollback(newest) {
		return nil
	}
	head, found, err := v.Heads.Get(ctx, v.extension)
	if err != nil {
		return retry(fmt.Errorf("finding out whether a rollback holds %s: %w", v.extension, err))
	}
	if found && (head.Hold != nil || head.PendingHold != nil) {
		return &halt{waiting: fmt.Sprintf("%s is a rollback: no revision is made until the hold is released: kubectl annotate cer %[1]s %s=%[1]s", newest.Name, olmv1alpha1.ReleaseHoldAnnotation)}
	}
	return nil
}

// came is what the status is told of a pass.
func (v *visit) came(outcome *halt, paused bool) report.Pass {
	p := report.Pass{
		Kind: v.spec.Resource.Kind, Name: v.object.GetName(), Generation: v.object.GetGeneration(),
		Paused: paused, Irreconcilable: outcome.irreconcilable, Waiting: outcome.waiting,
	}
	newest := v.newest()
	if newest == nil {
		return p
	}
	p.Rollout = &report.Rollout{
		Revision: newest.Name, Version: newest.Annotations[olmv1alpha1.VersionAnnotation], Notes: newest.Annotations[chartkind.NotesAnnotation],
		First: (newest.Spec.Revision == 1 || len(v.revisions) > 1) && !slices.ContainsFunc(v.revisions, func(one olmv1alpha1.ClusterExtensionRevision) bool {
			return one.Spec.Revision < newest.Spec.Revision && hasSucceeded(&one)
		}),
		Succeeded: hasSucceeded(newest), Failure: failureOf(newest),
	}
	return p
}

// writeStatus writes our part of the status when it is not what is stored.
func (v *visit) writeStatus(ctx context.Context, p report.Pass) error {
	stored := report.StatusOf(v.object)
	next := report.Reconciled(p, stored, metav1.NewTime(v.Clock.Now()))
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
	_, err := v.applyStatus(ctx, v.object, FieldManager, fields)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
