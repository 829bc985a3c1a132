package live

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
	"github.com/penstock-project/penstock/pkg/rollout/cause/gather"
)

const (
	// maxExplained bounds the objects of one answer for which a cause is searched. Each object
	// costs up to gather.MaxRequests. looksAtOnce bounds the concurrent searches.
	maxExplained = 20
	looksAtOnce  = 4
)

// explain finds the causes of objects that are not ready. It uses the caller's rights if they may
// list the Pods and Events of the namespace, and status otherwise.
func (i *inquiry) explain(ctx context.Context, objects []v1alpha1.RevisionObjectStatus) {
	rights := map[string]bool{}
	group := errgroup.Group{}
	group.SetLimit(looksAtOnce)
	for _, n := range unready(objects, maxExplained) {
		object, step, seen := &objects[n], i.steps[n], &i.seen[n]
		if seen.failing != nil && seen.failing.Cause != nil {
			object.Cause = &v1alpha1.FailureCause{}
			// The generated conversion cannot fail.
			_ = v1alpha1.Convert_olm_FailureCause_To_v1alpha1_FailureCause(seen.failing.Cause, object.Cause, nil)
		}
		if seen.live == nil || !cause.Explained(step.ID) {
			continue
		}
		allowed, asked := rights[step.Namespace]
		if !asked {
			allowed = i.mayList(ctx, step.Namespace, "", "pods") && i.mayList(ctx, step.Namespace, "", "events")
			rights[step.Namespace] = allowed
		}
		if allowed {
			group.Go(func() error { i.explainOne(ctx, step, seen, object); return nil })
		}
	}
	for n := range objects {
		if seen := &i.seen[n]; objects[n].State == v1alpha1.ObjectStateAvailable && seen.live != nil {
			i.endpoints(ctx, i.steps[n].ID, seen, &objects[n])
		}
	}
	_ = group.Wait() // no function returns an error
}

// explainOne finds the cause of one object. The live object contains everything in its manifest.
func (i *inquiry) explainOne(ctx context.Context, step phased, seen *objectView, object *v1alpha1.RevisionObjectStatus) {
	subject := cause.Subject{ID: step.ID, UID: seen.uid, Live: seen.live, Manifest: seen.live.Object}
	found, known, err := gather.New(i.deps.Objects).Explain(ctx, subject)
	if apierrors.IsForbidden(err) {
		object.Detail = i.lacks("list")
	}
	if !known {
		return
	}
	values := i.deps.Redactor.Values(step.GroupKind(), seen.live.Object)
	found.Mask(values.Mask)
	addCause(object, found)
	if found.Text != "" {
		object.Detail = found.Text
	}
}

func addCause(object *v1alpha1.RevisionObjectStatus, found cause.Cause) {
	name := func(id manifest.ID) v1alpha1.ObjectName {
		return v1alpha1.ObjectName{Group: id.Group, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
	}
	object.Cause = &v1alpha1.FailureCause{
		Reason: found.Reason, Object: name(found.Object), Container: found.Container, ExitCode: found.ExitCode, Restarts: found.Restarts,
	}
	if found.Related != nil {
		object.Cause.Related = new(name(*found.Related))
	}
	object.Message = strings.TrimPrefix(object.Message+"; "+found.String(), "; ")
}

// endpoints reports a webhook configuration with a Service without endpoints. The object itself is
// correct.
func (i *inquiry) endpoints(ctx context.Context, id manifest.ID, seen *objectView, object *v1alpha1.RevisionObjectStatus) {
	for _, service := range cause.WebhookServices(seen.live.Object) {
		if !i.mayList(ctx, service.Namespace, discoveryv1.GroupName, "endpointslices") {
			continue
		}
		slices, err := gather.List[discoveryv1.EndpointSlice](ctx, i.deps.Objects, discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), service.Namespace,
			metav1.ListOptions{LabelSelector: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: service.Name}).String()})
		if err != nil {
			continue // no fault is known
		}
		if missing, known := cause.OfEndpoints(id, service, slices); known {
			object.Reason = missing.Reason
			addCause(object, missing)
			return
		}
	}
}

// mayList reports whether the caller may list all objects of a resource in a namespace. Without an
// answer it returns false.
func (i *inquiry) mayList(ctx context.Context, namespace, group, resource string) bool {
	at := scope{schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}, namespace}
	allowed, err := i.reviews.review(ctx, "list", at, "")
	return err == nil && allowed
}

// repairs adds the time of the last repair of each object, from the inventory.
func (i *inquiry) repairs(objects []v1alpha1.RevisionObjectStatus) {
	last := map[manifest.ID]*v1alpha1.ObjectRepair{}
	for _, r := range i.work.Inventory.Repairs {
		last[r.ID] = &v1alpha1.ObjectRepair{Time: metav1.NewTime(r.Last), Message: r.Lost}
	}
	for n := range objects {
		objects[n].LastRepair = last[i.steps[n].ID]
	}
}
