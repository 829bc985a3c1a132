package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

var (
	_ rollout.Writer   = &cluster{}
	_ rollout.Reader   = &cluster{}
	_ rollout.Observer = &cluster{}
	_ rollout.Trier    = &cluster{}
	_ Facts            = &cluster{}
)

// cluster is a fake cluster. Its server-side apply is the code of kube-apiserver. Its watches show
// changes at once, unless a test delays them. Its facts are the facts that profiles read.
type cluster struct {
	mu       sync.Mutex
	objects  map[manifest.ID]*unstructured.Unstructured
	version  int
	profiles []profile.Profile
	missing  map[schema.GroupKind]bool
	// blind disables the answers of watches, ignorant the facts.
	blind, ignorant bool
	// frozen holds the objects that watches keep showing; nil is an absent object.
	frozen map[manifest.ID]*unstructured.Unstructured
	down   bool
	// refuse returns the error for an apply or a dry-run.
	refuse func(id manifest.ID, dry bool) error
	// written is called before every write, with the present object or nil.
	written func(ref manifest.Ref, body []byte, live *unstructured.Unstructured)
	fuse    *fuse
	// requests since the last call of spent. watched holds the interests of owners.
	requests []string
	watched  map[string][]observe.Interest
}

func newCluster(profiles []profile.Profile, fuse *fuse) *cluster {
	return &cluster{
		objects: map[manifest.ID]*unstructured.Unstructured{}, version: 1, profiles: profiles, missing: map[schema.GroupKind]bool{},
		fuse: fuse, watched: map[string][]observe.Interest{}, written: func(manifest.Ref, []byte, *unstructured.Unstructured) {},
	}
}

// plainly does not convert or default objects, like a custom resource without rules.
type plainly struct{}

func (plainly) Convert(in, out, _ any) error {
	*out.(*unstructured.Unstructured) = *in.(*unstructured.Unstructured)
	return nil
}

func (plainly) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (plainly) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (plainly) Default(runtime.Object) {}

func (plainly) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object, nil
}

// managing returns the tracker of managedFields for a kind.
func managing(kind schema.GroupVersionKind) *managedfields.FieldManager {
	manager, err := managedfields.NewDefaultCRDFieldManager(managedfields.NewDeducedTypeConverter(), plainly{}, plainly{}, plainly{}, kind, kind.GroupVersion(), "", nil)
	if err != nil {
		panic(err) // the arguments are fixed
	}
	return manager
}

func resourceOf(id manifest.ID) schema.GroupResource {
	return schema.GroupResource{Group: id.Group, Resource: strings.ToLower(id.Kind) + "s"}
}

// store writes an object. The generation counts changes outside metadata and status.
func (c *cluster) store(id manifest.ID, object *unstructured.Unstructured) {
	c.version++
	if object == nil {
		delete(c.objects, id)
		return
	}
	have := c.objects[id]
	object = object.DeepCopy()
	object.SetResourceVersion(fmt.Sprint(c.version))
	switch {
	case have == nil:
		object.SetGeneration(1)
		object.SetUID(types.UID(fmt.Sprintf("uid-%d", c.version)))
		object.SetCreationTimestamp(metav1.Now())
	case rollout.Fingerprint(have) != rollout.Fingerprint(object):
		object.SetGeneration(have.GetGeneration() + 1)
	}
	object.SetManagedFields(c.dated(have, object.GetManagedFields()))
	c.objects[id] = object
}

// dated gives each changed entry of managedFields a distinct time, because a test is faster than
// their resolution of one second.
func (c *cluster) dated(have *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	known := map[string]metav1.Time{}
	if have != nil {
		for _, entry := range have.GetManagedFields() {
			known[entry.Manager+string(entry.Operation)] = *entry.Time
		}
	}
	for i := range entries {
		if old, same := known[entries[i].Manager+string(entries[i].Operation)]; !same || !old.Equal(entries[i].Time) {
			at := metav1.NewTime(time.Unix(1700000000+int64(c.version), 0))
			entries[i].Time = &at
		}
	}
	return entries
}

func (c *cluster) apply(ref manifest.Ref, body []byte, manager string, force bool) (*unstructured.Unstructured, error) {
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	wanted.SetUID("")
	wanted.SetResourceVersion("")
	live := &unstructured.Unstructured{Object: map[string]any{}}
	live.SetGroupVersionKind(ref.GroupVersionKind())
	if have := c.objects[ref.ID]; have != nil {
		live = have.DeepCopy()
	}
	merged, err := managing(ref.GroupVersionKind()).Apply(live, wanted, manager, force)
	if err != nil {
		return nil, err
	}
	return merged.(*unstructured.Unstructured), nil
}

func (c *cluster) asked(verb string, id manifest.ID) error {
	if c.fuse.dead() {
		return errCrash
	}
	c.requests = append(c.requests, verb+" "+id.Name)
	if c.down {
		return apierrors.NewServiceUnavailable("the cluster is down")
	}
	if c.missing[id.GroupKind()] {
		return &meta.NoKindMatchError{GroupKind: id.GroupKind()}
	}
	return nil
}

func conflicts(id manifest.ID, why string) error {
	return apierrors.NewConflict(resourceOf(id), id.Name, errors.New(why))
}

func (c *cluster) guard(id manifest.ID, p targetclient.Precondition) error {
	have := c.objects[id]
	switch {
	case have == nil:
		return conflicts(id, "it does not exist")
	case have.GetUID() != p.UID || have.GetResourceVersion() != p.ResourceVersion:
		return conflicts(id, "it is another one")
	default:
		return nil
	}
}

// Try implements rollout.Trier.
func (c *cluster) Try(_ context.Context, ref manifest.Ref, body []byte, o targetclient.TryOptions) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("try", ref.ID); err != nil {
		return nil, err
	}
	if o.Precondition != (targetclient.Precondition{}) {
		if err := c.guard(ref.ID, targetclient.Precondition{UID: o.UID, ResourceVersion: o.ResourceVersion}); err != nil {
			return nil, err
		}
	}
	if c.refuse != nil {
		if err := c.refuse(ref.ID, true); err != nil {
			return nil, err
		}
	}
	return c.apply(ref, body, o.FieldManager, true)
}

// Apply implements rollout.Writer.
func (c *cluster) Apply(_ context.Context, ref manifest.Ref, body []byte, o targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	verb := "apply"
	if o.DryRun {
		verb = "try"
	}
	if err := c.asked(verb, ref.ID); err != nil {
		return nil, err
	}
	have := c.objects[ref.ID]
	switch {
	case o.CreateOnly && have != nil:
		return nil, conflicts(ref.ID, "it exists")
	case !o.CreateOnly:
		if err := c.guard(ref.ID, targetclient.Precondition{UID: o.UID, ResourceVersion: o.ResourceVersion}); err != nil {
			return nil, err
		}
	}
	if c.refuse != nil {
		if err := c.refuse(ref.ID, o.DryRun); err != nil {
			return nil, err
		}
	}
	var now *unstructured.Unstructured
	err := c.fuse.write(o.DryRun, func() error {
		var err error
		if now, err = c.apply(ref, body, o.FieldManager, !o.Unforced); err != nil || o.DryRun {
			return err
		}
		c.written(ref, body, have)
		if have == nil || !sameContent(have, now) {
			c.store(ref.ID, now)
		}
		now = c.objects[ref.ID]
		return nil
	})
	if err != nil {
		return nil, err
	}
	return partial(now), nil
}

func sameContent(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, o := range []*unstructured.Unstructured{a, b} {
		entries := o.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		o.SetManagedFields(entries)
	}
	return fmt.Sprint(a.Object) == fmt.Sprint(b.Object)
}

func partial(live *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	raw, err := live.MarshalJSON()
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	out := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(raw, out); err != nil {
		panic(err)
	}
	return out
}

// Delete implements rollout.Writer.
func (c *cluster) Delete(_ context.Context, ref manifest.Ref, p targetclient.Precondition) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("delete", ref.ID); err != nil {
		return err
	}
	if err := c.guard(ref.ID, p); err != nil {
		return err
	}
	return c.fuse.write(false, func() error {
		c.written(ref, nil, c.objects[ref.ID])
		c.store(ref.ID, nil)
		return nil
	})
}

// Reassign is used only for chains.
func (c *cluster) Reassign(context.Context, manifest.Ref, targetclient.Precondition, []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	return nil, errors.New("a plan reassigns nothing")
}

// Release is used only for chains.
func (c *cluster) Release(context.Context, manifest.Ref, targetclient.Precondition, targetclient.Marks) error {
	return errors.New("a plan releases nothing")
}

// Read implements rollout.Reader.
func (c *cluster) Read(_ context.Context, ref manifest.Ref) (*unstructured.Unstructured, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.asked("get", ref.ID); err != nil {
		return nil, err
	}
	if have := c.objects[ref.ID]; have != nil {
		return have.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resourceOf(ref.ID), ref.Name)
}

// ReadMetadata implements rollout.Reader.
func (c *cluster) ReadMetadata(ctx context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error) {
	live, err := c.Read(ctx, ref)
	if err != nil {
		return nil, err
	}
	return partial(live), nil
}

// Mapping implements rollout.Reader.
func (c *cluster) Mapping(_ context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing[kind.GroupKind()] {
		return nil, &meta.NoKindMatchError{GroupKind: kind.GroupKind()}
	}
	resource := schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: strings.ToLower(kind.Kind) + "s"}
	return &meta.RESTMapping{Resource: resource, GroupVersionKind: kind, Scope: meta.RESTScopeRoot}, nil
}

// Served implements rollout.Reader.
func (c *cluster) Served(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	return c.Mapping(ctx, kind)
}

// HasStatus implements rollout.Reader.
func (c *cluster) HasStatus(context.Context, schema.GroupVersionKind) (bool, error) { return true, nil }

// Instances is used only for definitions.
func (c *cluster) Instances(context.Context, manifest.Ref, int64) ([]metav1.PartialObjectMetadata, error) {
	return nil, nil
}

// Want implements rollout.Observer.
func (c *cluster) Want(owner string, interests ...observe.Interest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[owner] = slices.Clone(interests)
}

// Drop implements rollout.Observer.
func (c *cluster) Drop(owner string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watched, owner)
}

// Get returns an object that an owner watches by name.
func (c *cluster) Get(id manifest.ID) (observe.Observation, observe.Presence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := false
	for _, interests := range c.watched {
		wanted = wanted || slices.ContainsFunc(interests, func(i observe.Interest) bool { return i.ID == id })
	}
	have := c.objects[id]
	if old, frozen := c.frozen[id]; frozen {
		have = old
	}
	switch {
	case !wanted || c.blind || c.missing[id.GroupKind()]:
		return observe.Observation{ID: id}, observe.Unknown
	case have == nil:
		return observe.Observation{ID: id, ResourceVersion: fmt.Sprint(c.version)}, observe.Absent
	}
	seen := planwork.Names().Observe(have)
	seen.Object, seen.Managed, seen.Kept = have.DeepCopy(), append([]metav1.ManagedFieldsEntry{}, have.GetManagedFields()...), &probe.Reads{Whole: true}
	seen.Object.SetManagedFields(nil)
	// Watches drop this annotation (see package observe).
	if annotations := seen.Object.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		seen.Object.SetAnnotations(annotations)
	}
	return seen, observe.Present
}

// Trouble implements rollout.Observer.
func (c *cluster) Trouble(id manifest.ID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.missing[id.GroupKind()] {
		return &meta.NoKindMatchError{GroupKind: id.GroupKind()}
	}
	return nil
}

// Facts implements Facts.
func (c *cluster) Facts() (profile.Facts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	facts := profile.Facts{Definitions: map[string]profile.Definition{}, Objects: map[schema.GroupKind][]*unstructured.Unstructured{}}
	if c.ignorant {
		return facts, errors.New("the test knows nothing")
	}
	for _, p := range c.profiles {
		for _, requirement := range p.Requires() {
			if c.missing[requirement.Kind] {
				continue
			}
			facts.Definitions[requirement.Definition] = profile.Definition{Versions: []profile.Version{{Name: "v1", Schema: known()}}, Generation: 1}
			facts.Objects[requirement.Kind] = nil
		}
	}
	for id, object := range c.objects {
		if _, asked := facts.Objects[id.GroupKind()]; asked {
			trimmed, err := trimObject(object.DeepCopy())
			if err != nil {
				return facts, err
			}
			facts.Objects[id.GroupKind()] = append(facts.Objects[id.GroupKind()], trimmed.(*unstructured.Unstructured))
		}
	}
	for _, objects := range facts.Objects {
		slices.SortFunc(objects, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	}
	return facts, nil
}

// known returns a schema that has the fields that profiles look for, for any kind.
func known() map[string]any {
	of := func(fields map[string]any) map[string]any { return map[string]any{"properties": fields} }
	return of(map[string]any{"spec": of(map[string]any{
		"evictionLimits":            of(map[string]any{"total": of(nil), "node": of(nil)}),
		"virtualization":            of(map[string]any{"higherWorkloadDensity": of(map[string]any{"memoryOvercommitPercentage": of(nil)})}),
		"machineConfigPoolSelector": of(nil),
	})})
}

func (c *cluster) spent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	spent := c.requests
	c.requests = nil
	return spent
}

// alter changes an object as a field manager, by an update. It creates the object if needed.
func (c *cluster) alter(id manifest.ID, by string, change func(object map[string]any)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := id.GroupKind().WithVersion("v1")
	live := &unstructured.Unstructured{Object: map[string]any{}}
	live.SetGroupVersionKind(kind)
	if have := c.objects[id]; have != nil {
		live = have
	}
	now := live.DeepCopy()
	now.SetName(id.Name)
	now.SetNamespace(id.Namespace)
	change(now.Object)
	out, err := managing(kind).Update(live.DeepCopy(), now, by)
	if err != nil {
		panic(err)
	}
	c.store(id, out.(*unstructured.Unstructured))
}

// applies does a server-side apply as another field manager.
func (c *cluster) applies(id manifest.ID, by string, spec map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wanted := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	wanted.SetGroupVersionKind(id.GroupKind().WithVersion("v1"))
	wanted.SetName(id.Name)
	wanted.SetNamespace(id.Namespace)
	body, err := wanted.MarshalJSON()
	if err != nil {
		panic(err) // it consists of strings
	}
	now, err := c.apply(manifest.Ref{ID: id, Version: "v1"}, body, by, true)
	if err != nil {
		panic(err)
	}
	c.store(id, now)
}

func (c *cluster) set(id manifest.ID, by string, value any, path ...string) {
	c.alter(id, by, func(object map[string]any) {
		if err := unstructured.SetNestedField(object, value, path...); err != nil {
			panic(err)
		}
	})
}

func (c *cluster) erase(id manifest.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[id] != nil {
		c.store(id, nil)
	}
}

func (c *cluster) value(id manifest.ID, path ...string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	have := c.objects[id]
	if have == nil {
		return nil
	}
	value, _, err := unstructured.NestedFieldCopy(have.Object, path...)
	if err != nil {
		return nil
	}
	return value
}

// TestClusterApplies checks the fake against the rules of server-side apply.
func TestClusterApplies(t *testing.T) {
	c := newCluster(nil, &fuse{})
	id := manifest.ID{Group: "test", Kind: "Knob", Name: "a"}
	c.alter(id, "argocd", func(o map[string]any) { o["spec"] = map[string]any{"a": "1", "b": "1"} })
	ref := manifest.Ref{ID: id, Version: "v1"}
	live := c.objects[id]
	tried, err := c.Try(t.Context(), ref, []byte(`{"apiVersion":"test/v1","kind":"Knob","metadata":{"name":"a"},"spec":{"a":"2","c":"2"}}`),
		targetclient.TryOptions{FieldManager: "us", Precondition: targetclient.Precondition{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()}})
	if err != nil {
		t.Fatal(err)
	}
	spec := fmt.Sprint(tried.Object["spec"])
	if spec != "map[a:2 b:1 c:2]" || c.value(id, "spec", "a") != "1" {
		t.Errorf("tried: %s", spec)
	}
	var owners []string
	for _, entry := range tried.GetManagedFields() {
		owners = append(owners, entry.Manager+" "+entry.FieldsV1.GetRawString())
	}
	if got := strings.Join(owners, "; "); !strings.Contains(got, `us {"f:spec":{".":{},"f:a":{},"f:c":{}}}`) || !strings.Contains(got, `argocd {"f:spec":{".":{},"f:b":{}}}`) {
		t.Errorf("owners: %s", got)
	}
}
