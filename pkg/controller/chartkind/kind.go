package chartkind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/mapping"
	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// Reasons of the condition Accepted.
const (
	reasonAccepted                        = "Accepted"
	reasonAuthorUnknown      maker.Reason = "AuthorUnknown"
	reasonDenied             maker.Reason = "Denied"
	reasonInvalid            maker.Reason = "Invalid"
	reasonDefinitionMissing  maker.Reason = "DefinitionMissing"
	reasonDefinitionRefused  maker.Reason = "DefinitionUnsuitable"
	reasonChartUnavailable   maker.Reason = "ChartUnavailable"
	reasonAccountUnavailable maker.Reason = "ServiceAccountUnavailable"
	reasonTaken              maker.Reason = "KindTaken"
	reasonDeleting           maker.Reason = "Deleting"
)

// refuse returns the outcome for a ChartKind that is not served.
func refuse(reason maker.Reason, format string, args ...any) *maker.Outcome {
	return maker.Stop(reason, fmt.Sprintf(format, args...), "")
}

// reconcileKind serves one ChartKind, or stops serving it:
//
//  1. It reads the ChartKind, and does nothing while that is unknown.
//  2. If the ChartKind is being deleted, it releases the custom resources.
//  3. It checks that the author may impersonate the ServiceAccount, and that no other ChartKind has
//     the kind.
//  4. It checks that the CustomResourceDefinition exists, and has the needed status fields.
//  5. It pulls the chart.
//  6. It serves this generation.
//  7. It writes the status.
func (c *Controller) reconcileKind(ctx context.Context, name string) error {
	object, known := objectwatch.Find[*unstructured.Unstructured](c.informer(), name)
	if !known {
		return nil
	}
	if object == nil {
		c.end(name)
		return nil
	}
	kind, err := chartkind.From(object)
	if err != nil {
		return err
	}
	if kind.DeletionTimestamp != nil {
		return c.leave(ctx, object, kind)
	}
	pinned, refused := c.serve(ctx, object, kind)
	if ctx.Err() != nil {
		return nil
	}
	if err := c.writeKindStatus(ctx, object, kind, pinned, refused); err != nil {
		return err
	}
	if refused != nil && refused.Again {
		return maker.ErrAgain
	}
	return nil
}

// serve does steps 3 to 6. While a chart or a definition cannot be read, the earlier generation
// stays served. But Penstock stops acting as a ServiceAccount that the author cannot impersonate.
func (c *Controller) serve(ctx context.Context, object *unstructured.Unstructured, kind *chartkind.ChartKind) (pinned string, refused *maker.Outcome) {
	if refused := c.mayServe(ctx, object, kind); refused != nil {
		c.end(kind.Name)
		return "", refused
	}
	if other := c.holderOf(object, kind); other != "" {
		c.end(kind.Name)
		return "", refuse(reasonTaken, "ChartKind %s has this kind already, and a kind can have only one chart: delete that ChartKind, or this one", other).Later()
	}
	if serving := c.servedBy(kind.Name); serving != nil && serving.uid == kind.UID && serving.generation == kind.Generation {
		if refused, goesOn := c.recheck(ctx, serving, kind); goesOn {
			return serving.chart.Reference, refused
		}
		c.end(kind.Name)
	}
	made, err := mapping.New(&kind.Spec)
	if err != nil {
		return "", refuse(reasonInvalid, "%s", err)
	}
	definition, refused := c.fits(ctx, kind)
	if refused != nil {
		return "", refused
	}
	pulled, err := c.Charts.Chart(ctx, kind.Spec.Chart.Ref)
	if err != nil {
		refused := refuse(reasonChartUnavailable, "%s", err)
		if gone := (*image.Refused)(nil); !errors.As(err, &gone) || gone.Unverified {
			return "", refused.Later()
		}
		return "", refused
	}
	account, err := c.Account(kind.Spec.ServiceAccount)
	if err != nil {
		return "", refuse(reasonAccountUnavailable, "%s", err).Later()
	}
	if refused := c.canServe(ctx, account, kind); refused != nil {
		return "", refused
	}
	if refused := c.hold(ctx, object, kind); refused != nil {
		return "", refused
	}
	c.end(kind.Name)
	c.begin(ctx, &served{
		Controller: c, name: kind.Name, uid: kind.UID, generation: kind.Generation, spec: kind.Spec, mapping: made, account: account,
		chart: pulled, namespaced: definition.Spec.Scope == apiextensionsv1.NamespaceScoped, definition: definition.UID,
	})
	return pulled.Reference, nil
}

// recheck finds the reason why the cluster refuses requests for a served ChartKind: its
// definition was deleted, or its ServiceAccount lacks a right. No event reports this; requests
// fail. goesOn is false if the definition was deleted or replaced, because a watch of the old
// definition gets no events for minutes.
func (c *Controller) recheck(ctx context.Context, serving *served, kind *chartkind.ChartKind) (refused *maker.Outcome, goesOn bool) {
	if !serving.refused.Load() {
		return nil, true
	}
	found, refused := c.fits(ctx, kind)
	if found == nil && refused.Reason == reasonDefinitionMissing && refused.Err == nil || found != nil && found.UID != serving.definition {
		return refused, false
	}
	if refused == nil {
		refused = c.canServe(ctx, serving.account, kind)
	}
	if refused != nil {
		return refused.Later(), true
	}
	serving.refused.Store(false)
	return nil, true
}

// mayServe returns the reason why Penstock must not act as a ServiceAccount, or nil. Admission
// checks the same, but rights change later.
func (c *Controller) mayServe(ctx context.Context, object *unstructured.Unstructured, kind *chartkind.ChartKind) *maker.Outcome {
	stamp, err := chartkind.Author().Verify(c.Key, object)
	if err != nil {
		return refuse(reasonAuthorUnknown, "the author of this ChartKind, as it is now, is not known: %s; write it again: kubectl annotate --overwrite chartkind %s penstock.dev/author=%s", err, kind.Name, author.Renew)
	}
	account := kind.Spec.ServiceAccount
	may, err := c.Rights.May(ctx, stamp.Info(), authz.On(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "impersonate", account.Namespace, account.Name))
	if err != nil {
		return refuse(reasonDenied, "finding out whether %s may impersonate ServiceAccount %s: %s", stamp.User, account, err).Later()
	}
	if !may {
		return refuse(reasonDenied, "%s, who wrote this ChartKind, cannot impersonate ServiceAccount %s", stamp.User, account).Later()
	}
	return nil
}

// fits returns the CustomResourceDefinition, or nil, and the reason why it cannot be used.
func (c *Controller) fits(ctx context.Context, kind *chartkind.ChartKind) (found *apiextensionsv1.CustomResourceDefinition, refused *maker.Outcome) {
	resource := kind.Spec.Resource
	name := resource.GVR().GroupResource().String()
	found, err := c.Definitions.Definition(ctx, "", name)
	if err != nil {
		return nil, maker.Retry(reasonDefinitionMissing, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err))
	}
	if found == nil {
		return nil, refuse(reasonDefinitionMissing, "there is no CustomResourceDefinition %s; set spec.resource.plural if it has another name", name).Later()
	}
	i := slices.IndexFunc(found.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == resource.Version && v.Served
	})
	switch {
	case found.DeletionTimestamp != nil:
		return found, refuse(reasonDefinitionMissing, "CustomResourceDefinition %s is being deleted", name).Later()
	case found.Spec.Names.Kind != resource.Kind:
		return found, refuse(reasonDefinitionRefused, "CustomResourceDefinition %s is of kind %s, not %s", name, found.Spec.Names.Kind, resource.Kind)
	case i < 0:
		return found, refuse(reasonDefinitionRefused, "CustomResourceDefinition %s does not serve version %s", name, resource.Version).Later()
	case found.Spec.Scope != apiextensionsv1.NamespaceScoped && kind.Spec.Namespace == "":
		return found, refuse(reasonDefinitionRefused, "%s are cluster-scoped: set spec.namespace", found.Spec.Names.Plural)
	case found.Spec.Versions[i].Subresources == nil || found.Spec.Versions[i].Subresources.Status == nil:
		return found, refuse(reasonDefinitionRefused, "CustomResourceDefinition %s must have the subresource status", name).Later()
	}
	if lacks := chartkind.Lacks(found.Spec.Versions[i].Schema); lacks != "" {
		return found, refuse(reasonDefinitionRefused, "CustomResourceDefinition %s must have in its schema %s", name, lacks).Later()
	}
	return found, nil
}

// canServe returns the rights that a ServiceAccount lacks. Refused watches would otherwise fail
// silently.
func (c *Controller) canServe(ctx context.Context, account Account, kind *chartkind.ChartKind) *maker.Outcome {
	resource := kind.Spec.Resource.GVR()
	if _, err := account.Objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return refuse(reasonAccountUnavailable, "nobody serves %s: listing them in the name of ServiceAccount %s: %s", resource.GroupResource(), kind.Spec.ServiceAccount, err).Later()
	}
	status := authz.On(resource, "patch", "", "")
	status.Subresource = "status"
	needs := []authz.Right{authz.On(resource, "watch", "", ""), authz.On(resource, "patch", "", ""), status}
	for _, input := range kind.Spec.Inputs {
		needs = append(needs, authz.On(input.GVR(), "list", "", ""), authz.On(input.GVR(), "watch", "", ""))
	}
	who := serviceaccount.UserInfo(kind.Spec.ServiceAccount.Namespace, kind.Spec.ServiceAccount.Name, "")
	for _, needed := range needs {
		may, err := c.Rights.May(ctx, who, needed)
		if err != nil {
			return refuse(reasonDenied, "finding out whether ServiceAccount %s may %s: %s", kind.Spec.ServiceAccount, needed, err).Later()
		}
		if !may {
			return refuse(reasonDenied, "ServiceAccount %s cannot %s", kind.Spec.ServiceAccount, needed).Later()
		}
	}
	return nil
}

// hold adds the finalizer that keeps a ChartKind until its custom resources are released.
func (c *Controller) hold(ctx context.Context, object *unstructured.Unstructured, kind *chartkind.ChartKind) *maker.Outcome {
	if slices.Contains(kind.Finalizers, chartkind.Finalizer) {
		return nil
	}
	err := c.setFinalizers(ctx, object, append(slices.Clone(kind.Finalizers), chartkind.Finalizer))
	if err != nil {
		return refuse(reasonInvalid, "adding the finalizer to the ChartKind: %s", err).Later()
	}
	return nil
}

// setFinalizers writes the finalizers of a ChartKind, with a precondition on its version.
func (c *Controller) setFinalizers(ctx context.Context, object *unstructured.Unstructured, finalizers []string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers, "uid": object.GetUID(), "resourceVersion": object.GetResourceVersion()}})
	if err != nil {
		return err
	}
	_, err = c.Kinds.Resource(chartkind.Resource).Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// leaveAfter is how long a deleted ChartKind waits for the rights of its ServiceAccount. Then the
// engine releases its custom resources.
const leaveAfter = 2 * time.Minute

// leave releases the custom resources of a deleted ChartKind. Installed objects stay, in a chain
// that gets no further revisions.
func (c *Controller) leave(ctx context.Context, object *unstructured.Unstructured, kind *chartkind.ChartKind) error {
	if !slices.Contains(kind.Finalizers, chartkind.Finalizer) {
		c.end(kind.Name)
		return nil
	}
	account, err := c.Account(kind.Spec.ServiceAccount)
	if err != nil {
		return err
	}
	c.end(kind.Name)
	if err := removeFinalizer(ctx, account, kind.Spec.Resource); err != nil {
		left := leaveAfter - c.Clock.Since(kind.DeletionTimestamp.Time)
		if left > 0 || !isRefused(err) {
			refused := refuse(reasonDeleting, "removing the finalizer %s from its custom resources in the name of ServiceAccount %s: %s", chartkind.Finalizer, kind.Spec.ServiceAccount, err).Later()
			return errors.Join(err, c.writeKindStatus(ctx, object, kind, "", refused))
		}
		err = c.release(ctx, kind.Spec.Resource, err)
		if err != nil && !isRefused(err) {
			return err
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "A ChartKind is deleted, and its custom resources keep their finalizer: remove it from each of them, or create the ChartKind and its ServiceAccount again",
				"chartkind", kind.Name, "serviceAccount", kind.Spec.ServiceAccount.String(), "resource", kind.Spec.Resource.GVR().GroupResource().String(), "finalizer", chartkind.Finalizer)
		}
	}
	err = c.setFinalizers(ctx, object, slices.DeleteFunc(slices.Clone(kind.Finalizers), func(name string) bool { return name == chartkind.Finalizer }))
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// release removes Penstock's finalizer from the custom resources of a kind, with the engine's
// identity. Use it after the cluster has refused a request by the ServiceAccount: no other user
// would remove this finalizer. If the engine has no identity in the host, release returns that
// refusal.
func (c *Controller) release(ctx context.Context, kind chartkind.ResourceKind, refused error) error {
	if c.Releases == nil {
		return refused
	}
	return removeFinalizer(ctx, Account{Objects: c.Releases}, kind)
}

// isRefused reports whether an error means that a ServiceAccount does not exist, or lacks a right.
// A token request for a missing account returns ServiceUnavailable.
func isRefused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsServiceUnavailable(err)
}

func removeFinalizer(ctx context.Context, account Account, kind chartkind.ResourceKind) error {
	all, err := account.Objects.Resource(kind.GVR()).List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil // the kind does not exist any more
	}
	if err != nil {
		return err
	}
	for i := range all.Items {
		one := &all.Items[i]
		if !slices.Contains(one.GetFinalizers(), chartkind.Finalizer) {
			continue
		}
		if err := applyFinalizers(ctx, account, kind, one, nil); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func (c *Controller) writeKindStatus(ctx context.Context, object *unstructured.Unstructured, kind *chartkind.ChartKind, pinned string, refused *maker.Outcome) error {
	condition := metav1.Condition{Type: chartkind.ConditionAccepted, Status: metav1.ConditionTrue, Reason: reasonAccepted,
		Message: "custom resources of the kind are installed", ObservedGeneration: kind.Generation}
	next := chartkind.Status{Conditions: slices.Clone(kind.Status.Conditions), Chart: &chartkind.ChartStatus{Reference: pinned}}
	if refused != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, string(refused.Reason), report.Clip(refused.Message)
		next.Chart = kind.Status.Chart
	}
	condition.LastTransitionTime = metav1.NewTime(c.Clock.Now()).Rfc3339Copy()
	changed := meta.SetStatusCondition(&next.Conditions, condition)
	if !changed && (next.Chart == kind.Status.Chart || kind.Status.Chart != nil && *next.Chart == *kind.Status.Chart) {
		return nil
	}
	fields, err := chartkind.StatusOf(kind.Name, next)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.GetUID()}, "status": fields})
	if err != nil {
		return err
	}
	_, err = c.Kinds.Resource(chartkind.Resource).Patch(ctx, kind.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// begin serves a ChartKind until end is called or ctx ends.
func (c *Controller) begin(ctx context.Context, s *served) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	s.jobs = rendering.NewJobs[made]()
	s.passes, s.looks, s.begun = maker.NewQueue(c.Clock), maker.NewQueue(c.Clock), c.Clock.Now()
	s.prepare()
	s.stop = func() {
		cancel()
		s.passes.ShutDown()
		s.looks.ShutDown()
		running.Wait()
		s.jobs.Wait()
	}
	c.mu.Lock()
	c.running[s.name] = s
	c.mu.Unlock()
	c.workloads.begin()
	running.Go(func() { s.watch(ctx) })
	for range passWorkers {
		running.Go(func() {
			maker.Work(ctx, s.passes, s.pass, "A custom resource could not be reconciled; trying again")
		})
	}
	for range statusWorkers {
		running.Go(func() {
			maker.Work(ctx, s.looks, s.look, "The status of a custom resource could not be written; trying again")
		})
	}
}

func (c *Controller) end(name string) {
	c.mu.Lock()
	found := c.running[name]
	delete(c.running, name)
	c.mu.Unlock()
	if found != nil {
		found.stop()
	}
}
