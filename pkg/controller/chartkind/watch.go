package chartkind

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/chartkind/mapping"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/controller/rendering"
	"github.com/penstock-project/penstock/pkg/objectwatch"
)

// served is a served ChartKind. Its custom resources are watched as its ServiceAccount.
type served struct {
	*Controller
	name       string
	uid        types.UID
	generation int64
	spec       chartkind.Spec
	mapping    *mapping.Mapping
	account    Account
	chart      *Pulled
	namespaced bool
	definition types.UID
	stop       func()
	// refused is true if the cluster has refused a request, and the reason is not known yet.
	refused atomic.Bool
	begun   time.Time

	// passes holds the custom resources that need a pass. looks holds the custom resources whose
	// Ready and Progressing must be updated. Keys are namespace/name.
	passes, looks maker.Queue
	jobs          *rendering.Jobs[made]
	resources     cache.SharedIndexInformer
	// inputs holds the informers of input kinds, by the name of the input.
	inputs map[string]cache.SharedIndexInformer

	mu sync.Mutex
	// expected holds the workloads of revisions, by the key of the custom resource.
	expected map[string]expectation
	// chains maps the chain of revisions to the custom resource.
	chains map[string]string
	// settling holds the time since when looks are delayed, by the key of the custom resource.
	settling map[string]time.Time
	// told has the last written status, by the key of the custom resource.
	told map[string]told
}

// prepare creates the informers. They send no request before they run.
func (s *served) prepare() {
	s.expected, s.chains, s.inputs = map[string]expectation{}, map[string]string{}, map[string]cache.SharedIndexInformer{}
	s.settling, s.told = map[string]time.Time{}, map[string]told{}
	resource := s.spec.Resource.GVR()
	s.resources = objectwatch.NewInformer(s.account.Objects, s.account.Objects.Resource(resource), &unstructured.Unstructured{}, objectwatch.InformerOptions{
		Keep: ctrlcache.TransformStripManagedFields(), Failed: s.watchFailed, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	})
	for _, input := range s.spec.Inputs {
		s.inputs[input.Name] = objectwatch.NewInformer(s.account.Metadata, s.account.Metadata.Resource(input.GVR()), &metav1.PartialObjectMetadata{}, objectwatch.InformerOptions{
			Keep: onlyIdentity, Failed: s.watchFailed, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		})
	}
}

func (s *served) watchFailed(ctx context.Context, reflector *cache.Reflector, err error) {
	if ctx.Err() != nil {
		return
	}
	s.noteRefusal(err)
	cache.DefaultWatchErrorHandler(ctx, reflector, err)
}

// noteRefusal enqueues the ChartKind if the cluster refuses its kind, its ServiceAccount, or the
// rights of that account.
func (s *served) noteRefusal(err error) {
	if apierrors.IsNotFound(err) || isRefused(err) {
		s.again()
	}
}

func (s *served) again() {
	if !s.refused.Swap(true) {
		s.queue.Add(s.name)
	}
}

// onlyIdentity keeps the fields of an input that count.
func onlyIdentity(object any) (any, error) {
	found, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	return &metav1.PartialObjectMetadata{TypeMeta: found.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Namespace: found.Namespace, Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion, DeletionTimestamp: found.DeletionTimestamp,
	}}, nil
}

func (s *served) watch(ctx context.Context) {
	_, _ = s.resources.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { s.changed(ctx, nil, now) },
		UpdateFunc: func(before, now any) { s.changed(ctx, before, now) },
		DeleteFunc: func(now any) { s.changed(ctx, nil, now) },
	})
	for _, input := range s.spec.Inputs {
		informer := s.inputs[input.Name]
		changed := func(object any) { s.inputChanged(ctx, input, object) }
		_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: changed, DeleteFunc: changed, UpdateFunc: func(before, now any) {
				if input.NameFrom != "" && versionOf(before) != versionOf(now) {
					changed(now)
				}
			},
		})
	}
	// Earlier passes would find nothing, and no event would repeat them.
	objectwatch.Follow(ctx, func() {
		for _, key := range s.resources.GetStore().ListKeys() {
			s.passes.Add(key)
			s.looks.Add(key)
		}
	}, append(slices.Collect(maps.Values(s.inputs)), s.resources)...)
}

func versionOf(object any) string {
	if found, err := meta.Accessor(object); err == nil {
		return found.GetResourceVersion()
	}
	return ""
}

// isKnown reports whether all inputs of a pass are known.
func (s *served) isKnown() bool {
	for _, informer := range s.inputs {
		if !informer.HasSynced() {
			return false
		}
	}
	return s.resources.HasSynced()
}

// changed enqueues a pass over a custom resource if anything except its status has changed. It
// enqueues a look after any change: one event may combine Penstock's own write with the write of
// another user.
func (s *served) changed(ctx context.Context, before, now any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(now)
	if err != nil || ctx.Err() != nil {
		return
	}
	s.looks.Add(key)
	if before == nil || !sameButStatus(before, now) {
		s.passes.Add(key)
	}
}

// sameButStatus reports whether an object has the same uid, spec and metadata as before. It ignores
// fields that every write changes.
func sameButStatus(before, now any) bool {
	was, ok := before.(*unstructured.Unstructured)
	is, also := now.(*unstructured.Unstructured)
	if !ok || !also {
		return false
	}
	return reflect.DeepEqual(withoutStatus(was), withoutStatus(is))
}

func withoutStatus(object *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for name, value := range object.Object {
		if name != "status" && name != "metadata" {
			out[name] = value
		}
	}
	metadata := map[string]any{}
	all, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata")
	fields, _ := all.(map[string]any)
	for name, value := range fields {
		if name != "resourceVersion" && name != "managedFields" {
			metadata[name] = value
		}
	}
	out["metadata"] = metadata
	return out
}

// inputChanged enqueues the custom resources that use an object as an input.
func (s *served) inputChanged(ctx context.Context, input chartkind.Input, object any) {
	found, ok := objectwatch.Told[metav1.Object](object)
	if !ok || ctx.Err() != nil || !s.isKnown() {
		return
	}
	all := s.resources.GetStore().List()
	if found.GetNamespace() != "" && s.namespaced {
		all, _ = s.resources.GetIndexer().ByIndex(cache.NamespaceIndex, found.GetNamespace()) // the index exists
	}
	for _, kept := range all {
		resource, ok := kept.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		if name, named := mapping.At(resource.Object, input.NameFrom); input.NameFrom == "" || named && name == found.GetName() {
			if key, err := cache.MetaNamespaceKeyFunc(resource); err == nil {
				s.passes.Add(key)
			}
		}
	}
}

func (s *served) known(resource *unstructured.Unstructured) mapping.Inputs {
	inputs := mapping.Inputs{}
	for _, input := range s.spec.Inputs {
		store := s.inputs[input.Name]
		namespace := cmp.Or(resource.GetNamespace(), s.spec.Namespace)
		if input.NameFrom == "" {
			inputs[input.Name] = map[string]any{"names": namesIn(store, namespace)}
			continue
		}
		value := map[string]any{"exists": false}
		if name, _ := mapping.At(resource.Object, input.NameFrom); name != nil {
			if text, isText := name.(string); isText {
				if found := findMetadata(store, namespace, text); found != nil {
					value = map[string]any{"exists": true, "name": text, "resourceVersion": found.ResourceVersion}
				}
			}
		}
		inputs[input.Name] = value
	}
	return inputs
}

func namesIn(informer cache.SharedIndexInformer, namespace string) []any {
	var names []string
	all, _ := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace) // the index exists
	for _, kept := range all {
		if found, ok := kept.(*metav1.PartialObjectMetadata); ok && found.DeletionTimestamp == nil {
			names = append(names, found.Name)
		}
	}
	slices.Sort(names)
	out := make([]any, len(names))
	for i, name := range names {
		out[i] = name
	}
	return out
}

// findMetadata finds an object in a namespace, or a cluster-scoped object.
func findMetadata(informer cache.SharedIndexInformer, namespace, name string) *metav1.PartialObjectMetadata {
	for _, key := range []string{namespace + "/" + name, name} {
		if found, _ := objectwatch.Find[*metav1.PartialObjectMetadata](informer, key); found != nil && found.DeletionTimestamp == nil {
			return found
		}
	}
	return nil
}

func (s *served) namespaceOf(resource *unstructured.Unstructured) string {
	if s.spec.Namespace != "" {
		return s.spec.Namespace
	}
	return resource.GetNamespace()
}

// watchRevisions enqueues the custom resources of revisions that are created, deleted, or have a
// new result.
func (c *Controller) watchRevisions() error {
	wake := func(object any) (*served, string) {
		revision, ok := objectwatch.Told[*olmv1alpha1.ClusterExtensionRevision](object)
		if !ok {
			return nil, ""
		}
		name, key, found := strings.Cut(revision.Annotations[chartkind.ResourceAnnotation], "/")
		if !found {
			return c.byChain(revision.Labels[olmv1alpha1.ChainLabel]) // a rollback, or a revision of another owner
		}
		return c.servedBy(name), strings.TrimPrefix(key, "/")
	}
	both := func(object any) {
		if s, key := wake(object); s != nil {
			s.passes.Add(key)
			s.looks.Add(key)
		}
	}
	_, err := c.Informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: both, DeleteFunc: both, UpdateFunc: func(before, now any) {
		was, ok := before.(*olmv1alpha1.ClusterExtensionRevision)
		is, also := now.(*olmv1alpha1.ClusterExtensionRevision)
		// The availability of its objects concerns only the looks.
		if !ok || !also || revisionStateOf(was) != revisionStateOf(is) {
			both(now)
		}
	}})
	if err != nil {
		return fmt.Errorf("watching revisions for ChartKinds: %w", err)
	}
	return nil
}

// revisionState has the fields of a revision that a pass reads.
type revisionState struct {
	uid       types.UID
	lifecycle olmv1alpha1.LifecycleState
	deleting  bool
	succeeded bool
	failure   string
}

func revisionStateOf(revision *olmv1alpha1.ClusterExtensionRevision) revisionState {
	return revisionState{
		uid: revision.UID, lifecycle: revision.Spec.LifecycleState, deleting: revision.DeletionTimestamp != nil,
		succeeded: maker.HasSucceeded(revision), failure: failureOf(revision),
	}
}

func (c *Controller) byChain(chain string) (*served, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.running {
		s.mu.Lock()
		key, found := s.chains[chain]
		s.mu.Unlock()
		if found {
			return s, key
		}
	}
	return nil, ""
}

// enqueueByChain enqueues a look at the custom resource of a workload's chain. An empty chain means
// all custom resources.
func (c *Controller) enqueueByChain(chain string) {
	if chain == "" {
		c.mu.Lock()
		all := slices.Collect(maps.Values(c.running))
		c.mu.Unlock()
		for _, s := range all {
			for _, key := range s.resources.GetStore().ListKeys() {
				s.looks.Add(key)
			}
		}
		return
	}
	if s, key := c.byChain(chain); s != nil {
		s.looks.Add(key)
	}
}
