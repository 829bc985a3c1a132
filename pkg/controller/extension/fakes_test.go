package extension

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// AddEventHandler implements the informer of revisions.
func (p *plane) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers = append(p.handlers, handler)
	return nil, nil
}

// Get implements Heads.
func (p *plane) Get(_ context.Context, name string) (chain.Head, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *p.headOf(name), true, nil
}

// headOf returns the head of a chain. The caller holds the lock.
func (p *plane) headOf(name string) *chain.Head {
	if p.heads[name] == nil {
		p.heads[name] = &chain.Head{Name: name}
	}
	return p.heads[name]
}

// May implements Rights.
func (p *plane) May(_ context.Context, who user.Info, asked authz.Right) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reviews++
	return !p.lacks[asked.Verb] && (asked.Verb != "impersonate" || p.impersonators[who.GetName()]), nil
}

// Pull implements Images.
func (p *plane) Pull(_ context.Context, _, _, reference string) (*Pulled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulls.Add(1)
	if p.pullErr != nil {
		return nil, p.pullErr
	}
	tagged, _, _ := strings.Cut(reference, "@")
	kind := image.Bundle
	if _, err := fs.Stat(p.images[tagged], image.ChartFile); err == nil {
		kind = image.Chart
	}
	return &Pulled{Reference: tagged + "@sha256:" + strings.Repeat("a", 64), Kind: kind, FS: p.images[tagged], Signed: p.signed[tagged], Close: func() {}}, nil
}

// Definition implements Definitions.
func (p *plane) Definition(context.Context, string, string) (*apiextensionsv1.CustomResourceDefinition, error) {
	return p.live, nil
}

// Resolved and Pulled implement Metrics.
func (p *plane) Resolved(time.Duration, error) {
	p.asked.Add(1)
	if p.resolved != nil {
		p.resolved()
	}
}
func (p *plane) Pulled(time.Duration, error) {}

type reader struct{ *plane }

func (r reader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errors.New("only lists are read")
}

func (r reader) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	r.mu.Lock()
	defer r.mu.Unlock()
	out := list.(*olmv1alpha1.ClusterExtensionRevisionList)
	for _, one := range r.revisions {
		if asked.LabelSelector == nil || asked.LabelSelector.Matches(labels.Set(one.Labels)) {
			out.Items = append(out.Items, *one.DeepCopy())
		}
	}
	return nil
}

// writer writes revisions as a user, like Penstock's API.
type writer struct {
	*plane
	who string
}

func (w writer) Create(_ context.Context, revision *olmv1alpha1.ClusterExtensionRevision, options metav1.CreateOptions) (*olmv1alpha1.ClusterExtensionRevision, error) {
	resource := olmv1alpha1.Resource("clusterextensionrevisions")
	w.mu.Lock()
	denied := w.denied[w.who]
	w.mu.Unlock()
	if denied {
		return nil, apierrors.NewForbidden(resource, revision.Name, errors.New("a revision may only do what its requester may do: "+w.who+" cannot create configmaps lamp"))
	}
	if len(options.DryRun) > 0 {
		return revision, nil
	}
	if w.who == "penstock" && revision.Annotations[olmv1alpha1.AdoptedReleaseAnnotation] == "" && revision.Spec.LifecycleState != olmv1alpha1.LifecycleStatePaused {
		w.Errorf("%s is rolled out in nobody's name", revision.Name)
	}
	if err := w.write(); err != nil {
		return nil, err
	}
	r := revision.DeepCopy()
	name, _, _ := olm.ChainOf(r.Name)
	w.mu.Lock()
	head, creating := w.headOf(name), w.creating
	known := w.revisions[r.Name] != nil || r.Spec.Revision <= head.Highest
	w.mu.Unlock()
	if known {
		return nil, apierrors.NewAlreadyExists(resource, r.Name)
	}
	if creating != nil {
		creating(r)
	}
	r.UID, r.Generation, r.Labels[olmv1alpha1.ChainLabel] = types.UID(r.Name), 1, name
	for i, phase := range r.Spec.Phases {
		for j := range phase.Objects {
			entry := &r.Spec.Phases[i].Objects[j]
			sealed, err := digester().FromJSON(entry.Object.Raw)
			if err != nil {
				return nil, err
			}
			if w.releases != nil {
				w.releases.keep(r.Name, entry.Object.Raw)
			}
			*entry = olmv1alpha1.RevisionObject{APIVersion: "v1", Kind: sealed.ID.Kind, Namespace: sealed.ID.Namespace, Name: sealed.ID.Name, Digest: string(sealed.Digest)}
		}
	}
	w.mu.Lock()
	// The creation time is the time when the revision becomes visible.
	r.CreationTimestamp = metav1.NewTime(w.clock.Now().Truncate(time.Second))
	head.Highest, head.Confirmed, w.revisions[r.Name] = r.Spec.Revision, true, r
	w.made[r.Name] = w.who
	w.mu.Unlock()
	w.put(r)
	return r, nil
}

func (w writer) Patch(_ context.Context, name string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*olmv1alpha1.ClusterExtensionRevision, error) {
	if err := w.write(); err != nil {
		return nil, err
	}
	var change struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     *settings         `json:"spec"`
	}
	var state struct {
		Spec struct {
			LifecycleState olmv1alpha1.LifecycleState `json:"lifecycleState"`
		} `json:"spec"`
	}
	for _, into := range []any{&change, &state} {
		if err := json.Unmarshal(patch, into); err != nil {
			return nil, err
		}
	}
	if state.Spec.LifecycleState != "" {
		return w.goOn(name, state.Spec.LifecycleState, change.Metadata.ResourceVersion)
	}
	w.change(name, func(r *olmv1alpha1.ClusterExtensionRevision) {
		for key, value := range change.Metadata.Annotations {
			metav1.SetMetaDataAnnotation(&r.ObjectMeta, key, value)
		}
		maps.DeleteFunc(r.Annotations, func(_, value string) bool { return value == "" })
		if change.Metadata.OwnerReferences != nil {
			r.OwnerReferences = change.Metadata.OwnerReferences
		}
		if change.Spec != nil {
			change.Spec.into(&r.Spec)
			r.Generation++
		}
		if r.Annotations[olmv1alpha1.HandedToHelmAnnotation] != "" {
			// The engine gives up the objects, and reports that.
			meta.SetStatusCondition(&r.Status.Conditions, metav1.Condition{Type: olmv1alpha1.ConditionHeld, Status: metav1.ConditionTrue, Reason: status.ReasonHandedToHelm})
		}
	})
	return nil, nil
}

// goOn approves a proposal, like Penstock's API.
func (w writer) goOn(name string, state olmv1alpha1.LifecycleState, version string) (*olmv1alpha1.ClusterExtensionRevision, error) {
	resource := olmv1alpha1.Resource("clusterextensionrevisions")
	w.mu.Lock()
	now, denied := w.revisions[name].ResourceVersion, w.denied[w.who]
	w.mu.Unlock()
	if now != version {
		return nil, apierrors.NewConflict(resource, name, errors.New("it is another version"))
	}
	if denied {
		return nil, apierrors.NewForbidden(resource, name, errors.New("a revision may only do what its requester may do: "+w.who+" cannot patch configmaps lamp"))
	}
	w.change(name, func(r *olmv1alpha1.ClusterExtensionRevision) {
		r.Spec.LifecycleState = state
		r.Generation++
		delete(r.Annotations, extension.ProposedAnnotation)
		delete(r.Annotations, olmv1alpha1.ScheduledApprovalAnnotation)
		w.made[name] = w.who
	})
	return nil, nil
}

func (w writer) Delete(_ context.Context, name string, options metav1.DeleteOptions) error {
	if err := w.write(); err != nil {
		return err
	}
	w.mu.Lock()
	r := w.revisions[name]
	if r == nil || *options.Preconditions.ResourceVersion != r.ResourceVersion {
		w.mu.Unlock()
		return apierrors.NewConflict(olmv1alpha1.Resource("clusterextensionrevisions"), name, errors.New("it is another version"))
	}
	delete(w.revisions, name)
	handlers := w.handlers
	w.mu.Unlock()
	for _, handler := range handlers {
		handler.OnDelete(r)
	}
	return nil
}

type dyingHost struct {
	*dynamicfake.FakeDynamicClient
	plane *plane
}

func (h *dyingHost) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return dyingResource{h.FakeDynamicClient.Resource(resource), h.plane}
}

type dyingResource struct {
	dynamic.NamespaceableResourceInterface
	plane *plane
}

func (r dyingResource) UpdateStatus(ctx context.Context, object *unstructured.Unstructured, options metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	if namespace, _, _ := unstructured.NestedString(object.Object, "spec", "namespace"); namespace == "others" {
		return object, nil // the test sets the status
	}
	if err := r.plane.write(); err != nil {
		return nil, err
	}
	r.plane.pace()
	r.plane.writing.Lock()
	defer r.plane.writing.Unlock()
	now, err := r.Get(ctx, object.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	// The fake tracker has no resourceVersions.
	if now.GetGeneration() != object.GetGeneration() || !maps.Equal(now.GetAnnotations(), object.GetAnnotations()) {
		return nil, apierrors.NewConflict(extension.Resource.GroupResource(), object.GetName(), errors.New("it is another version"))
	}
	return r.NamespaceableResourceInterface.UpdateStatus(ctx, object, options)
}

func digester() manifest.Digester { return manifest.Digester{SecretKey: []byte("secret")} }

// Propose returns a diff with the notes that the test set.
func (w writer) Propose(_ context.Context, name string, revision *olmv1alpha1.ClusterExtensionRevision, _ metav1.CreateOptions) (*olmv1alpha1.RevisionDiff, error) {
	if w.who != "penstock" || revision.Name != name || revision.Spec.LifecycleState != olmv1alpha1.LifecycleStatePaused || !neverApproved(revision) {
		w.Errorf("%s compares %s, which is no proposal", w.who, name)
	}
	w.mu.Lock()
	w.compared++
	notes, meanwhile := slices.Clone(w.notes), w.meanwhile
	w.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	return &olmv1alpha1.RevisionDiff{Notes: notes}, nil
}
