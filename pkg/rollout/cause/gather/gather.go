// Package gather reads the objects that package cause needs: at most three requests for an object,
// all of them lists in one namespace.
package gather

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/cause"
)

const (
	// MaxRequests is the largest number of requests for one object.
	MaxRequests = 3
	// maxObjects is the largest number of objects that a list returns, which costs a few megabytes
	// at most. Of more Pods it reads the first by name.
	maxObjects = 250
	maxEvents  = 50
)

// Lister lists objects of a namespace, like *targetclient.Client. A list costs one request.
type Lister interface {
	List(ctx context.Context, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// Gatherer finds causes. Several goroutines may use it.
type Gatherer struct{ lister Lister }

// New returns a gatherer.
func New(lister Lister) *Gatherer { return &Gatherer{lister} }

func pods() schema.GroupVersionResource   { return corev1.SchemeGroupVersion.WithResource("pods") }
func events() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("events") }
func claims() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
}
func replicaSets() schema.GroupVersionResource {
	return appsv1.SchemeGroupVersion.WithResource("replicasets")
}

// look is the search for the cause of one object.
type look struct {
	*Gatherer
	cause.Subject
	// about is the uid of the object that the cause is about; pod is that object if it is a Pod.
	about types.UID
	pod   *corev1.Pod
}

// Explain returns the cause of an object that is not ready. It stops at the first sufficient
// answer:
//
//  1. Read the object's own status, without a request.
//  2. For a Deployment, find the newest ReplicaSet, with one request.
//  3. Read the Pods of the newest template, with one request.
//  4. Read their Events, or a claim, with one request.
//
// It returns false if no cause is known. It returns the error of the first failed request together
// with the earlier findings.
func (g *Gatherer) Explain(ctx context.Context, subject cause.Subject) (cause.Cause, bool, error) {
	if subject.Behind() {
		return cause.Cause{}, false, nil
	}
	l := &look{Gatherer: g, Subject: subject, about: subject.UID, pod: subject.Pod()}
	found, known := subject.OfSelf()
	selector, hasPods := subject.PodSelector()
	switch {
	case known && subject.IsDeployment():
		return found, true, nil
	case hasPods:
		ofPods, some, err := l.ofPods(ctx, selector)
		if err != nil {
			return found, known, err
		}
		if some {
			found, known = ofPods, true
		}
	}
	if !known {
		return cause.Cause{}, false, nil
	}
	return l.refine(ctx, found)
}

func (l *look) ofPods(ctx context.Context, selector labels.Selector) (cause.Cause, bool, error) {
	owner := l.ID
	if l.IsDeployment() {
		sets, err := List[appsv1.ReplicaSet](ctx, l.lister, replicaSets(), l.ID.Namespace, metav1.ListOptions{LabelSelector: selector.String(), Limit: maxObjects})
		if err != nil {
			return cause.Cause{}, false, err
		}
		set := cause.NewestReplicaSet(l.UID, sets)
		if set == nil {
			return cause.OfMissingPods(l.ID), true, nil
		}
		l.about, owner = set.UID, manifest.ID{Group: "apps", Kind: "ReplicaSet", Namespace: set.Namespace, Name: set.Name}
		if hash := set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
			own, _ := labels.SelectorFromSet(labels.Set{appsv1.DefaultDeploymentUniqueLabelKey: hash}).Requirements()
			selector = selector.Add(own...)
		}
	}
	all, err := List[corev1.Pod](ctx, l.lister, pods(), l.ID.Namespace, metav1.ListOptions{LabelSelector: selector.String(), Limit: maxObjects})
	if err != nil {
		return cause.Cause{}, false, err
	}
	newest := l.PodsOf(l.about, all)
	if len(newest) == 0 && l.ID.Group == "apps" {
		return cause.OfMissingPods(owner), true, nil
	}
	found, known := cause.OfPods(newest)
	for i := range newest {
		if known && newest[i].Name == found.Object.Name {
			l.pod, l.about = &newest[i], newest[i].UID
		}
	}
	return found, known, nil
}

// refine refines a cause with one request.
func (l *look) refine(ctx context.Context, found cause.Cause) (cause.Cause, bool, error) {
	switch {
	case found.NeedsEvents() && l.about != "":
		selected := fields.Set{"involvedObject.uid": string(l.about), "type": corev1.EventTypeWarning}
		seen, err := List[corev1.Event](ctx, l.lister, events(), l.ID.Namespace, metav1.ListOptions{FieldSelector: selected.String(), Limit: maxEvents})
		if err != nil {
			return found, true, err
		}
		return found.ByEvents(seen, l.pod), true, nil
	case l.pod != nil && cause.NotBound(found.Text):
		return l.unbound(ctx, found)
	}
	return found, true, nil
}

// unbound finds the unbound claim of a Pod.
func (l *look) unbound(ctx context.Context, found cause.Cause) (cause.Cause, bool, error) {
	options := metav1.ListOptions{Limit: maxObjects}
	names := cause.ClaimsOf(l.pod)
	if len(names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, names[0]).String()
	}
	all, err := List[corev1.PersistentVolumeClaim](ctx, l.lister, claims(), l.ID.Namespace, options)
	if err != nil {
		return found, true, err
	}
	for _, name := range names {
		for i := range all {
			if all[i].Name != name {
				continue
			}
			if better, open := cause.OfClaim(&all[i], found); open {
				return better, true, nil
			}
		}
	}
	return found, true, nil
}

// List lists objects of a type. It skips objects that cannot be decoded as that type.
func List[T any](ctx context.Context, lister Lister, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions) ([]T, error) {
	found, err := lister.List(ctx, resource, namespace, options)
	if err != nil {
		return nil, err
	}
	typed := make([]T, 0, len(found.Items))
	for i := range found.Items {
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &one); err == nil {
			typed = append(typed, one)
		}
	}
	return typed, nil
}
