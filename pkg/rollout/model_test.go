package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

var (
	_ Writer            = &model{}
	_ Reader            = &model{}
	_ Observer          = &model{}
	_ NamespaceContents = &model{}
)

var errCrash = errors.New("the process was killed by the test")

func testNames() observe.Names {
	return observe.Names{ChainLabel: "penstock.dev/chain", AppliedAnnotation: "penstock.dev/applied", TeardownAnnotation: "penstock.dev/teardown-policy",
		ProtectLabel: "policy.penstock.dev/protect", TakeOverAnnotation: "penstock.dev/take-over-from", ManagerPrefix: "penstock/"}
}

// model is a cluster with the features that the engine relies on: objects with owned fields,
// preconditions, and a watch whose lag the test sets. test/engine/client proves the same behaviour
// of a real server.
type model struct {
	mu      sync.Mutex
	version int
	objects map[manifest.ID]*thing
	watches
	definitions
	// named objects are watched by name, by owner.
	named map[string]map[manifest.ID]bool

	// writes and reads since the last call of spent.
	writes, reads []string
	// applied and deleted are all objects that the writer wrote to and deleted.
	applied, deleted map[types.UID]bool
	// released are the objects that the writer ever released; true until it writes to them again.
	released map[types.UID]bool
	// fuse is the number of writes until the process is killed; negative means never.
	fuse int
	dead bool
	// lastWriteLands is true if the write at which the process is killed still happens.
	lastWriteLands bool
	// webhook changes every applied object before it is stored.
	webhook func(*thing)
	// refuse lets a test answer a write with an error.
	refuse func(verb string, ref manifest.Ref) error
	// taking is called for every object that is about to be deleted or released.
	taking func(verb string, have *thing)
	// volumes of bound claims, and foreign objects in namespaces.
	volumes map[manifest.ID]string
	inside  map[string][]metav1.PartialObjectMetadata
	// insideError is the error of every listing of a namespace; nil for none.
	insideError error
	// unreadable is the error of every Read; nil for none.
	unreadable error
}

// thing is one live object. It is immutable: a change creates a copy.
type thing struct {
	ref        manifest.Ref
	uid        types.UID
	version    int
	generation int64
	deleting   bool
	controller *metav1.OwnerReference
	finalizers []string
	fields     map[string]owned
	// readyAt is the generation that its controller has processed.
	readyAt int64
	// versions of the managers' entries; no version means that of ref.
	versions map[string]string
}

type owned struct {
	value string
	by    []string
}

func newModel() *model {
	return &model{
		objects: map[manifest.ID]*thing{}, watches: newWatches(), version: 1, fuse: -1,
		applied: map[types.UID]bool{}, deleted: map[types.UID]bool{}, released: map[types.UID]bool{},
	}
}

// counts reports whether the server counts generations of a kind.
func counts(kind string) bool { return kind == "Deployment" }

func (m *model) store(id manifest.ID, now *thing) {
	m.version++
	shown := m.shows(m.objects[id]) || m.shows(now)
	if now != nil {
		now.version = m.version
		m.objects[id] = now
	} else {
		delete(m.objects, id)
	}
	m.happened(change{id, now, m.version, shown})
}

func (t *thing) clone() *thing {
	c := *t
	c.fields = maps.Clone(t.fields)
	c.finalizers = slices.Clone(t.finalizers)
	c.versions = maps.Clone(t.versions)
	return &c
}

// set sets a field as an update by a manager does: a new value belongs to that manager alone.
func (t *thing) set(path, value, by string) {
	have, ok := t.fields[path]
	if ok && have.value == value {
		return
	}
	t.fields[path] = owned{value, []string{by}}
}

func (t *thing) metadata() metav1.ObjectMeta {
	o := metav1.ObjectMeta{
		Namespace: t.ref.Namespace, Name: t.ref.Name, UID: t.uid, Generation: t.generation,
		ResourceVersion: fmt.Sprint(t.version), Finalizers: t.finalizers,
	}
	if t.deleting {
		o.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	if t.controller != nil {
		o.OwnerReferences = []metav1.OwnerReference{*t.controller}
	}
	managers := map[string][]string{}
	for path, field := range t.fields {
		switch kind, key, _ := strings.Cut(path, ":"); kind {
		case "labels":
			metav1.SetMetaDataLabel(&o, key, field.value)
		case "annotations":
			metav1.SetMetaDataAnnotation(&o, key, field.value)
		}
		for _, by := range field.by {
			managers[by] = append(managers[by], path)
		}
	}
	for _, by := range slices.Sorted(maps.Keys(managers)) {
		paths := managers[by]
		slices.Sort(paths)
		entry := entryNamed(by)
		entry.APIVersion, entry.FieldsType = t.entryOf(by).String(), "FieldsV1"
		entry.FieldsV1 = metav1.NewFieldsV1(string(fieldsOf(paths)))
		o.ManagedFields = append(o.ManagedFields, entry)
	}
	return o
}

// entryNamed returns the managedFields entry for the name of a manager. The chain's managers and
// "applier" apply, and all other managers update. An @ precedes the subresource.
func entryNamed(by string) metav1.ManagedFieldsEntry {
	name, subresource, _ := strings.Cut(by, "@")
	operation := metav1.ManagedFieldsOperationUpdate
	if strings.HasPrefix(name, "penstock/") || name == "applier" {
		operation = metav1.ManagedFieldsOperationApply
	}
	return metav1.ManagedFieldsEntry{Manager: name, Operation: operation, Subresource: subresource}
}

// managers returns the managers of each field in managedFields.
func managers(entries []metav1.ManagedFieldsEntry) (map[string][]string, error) {
	owners := map[string][]string{}
	for _, entry := range entries {
		set, err := managedfields.FieldSet(entry)
		if err != nil {
			return nil, err
		}
		by := entry.Manager
		if entry.Subresource != "" {
			by += "@" + entry.Subresource
		}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			if len(path) < 2 {
				return // of a map itself
			}
			name := *path[len(path)-2].FieldName + ":" + *path[len(path)-1].FieldName
			owners[name] = append(owners[name], by)
		})
	}
	return owners, nil
}

func fieldsOf(paths []string) []byte {
	tree := map[string]any{}
	put := func(at map[string]any, keys ...string) {
		for _, key := range keys {
			next, ok := at["f:"+key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at["f:"+key] = next
			}
			at = next
		}
	}
	for _, path := range paths {
		kind, key, _ := strings.Cut(path, ":")
		if kind == "data" {
			put(tree, "data", key)
		} else {
			put(tree, "metadata", kind, key)
		}
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		panic(err)
	}
	return raw
}

func (t *thing) partial() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: t.ref.APIVersion(), Kind: t.ref.Kind},
		ObjectMeta: t.metadata(),
	}
}

func (t *thing) whole() *unstructured.Unstructured {
	raw, err := json.Marshal(t.partial())
	if err != nil {
		panic(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(raw); err != nil { // keeps integers as integers
		panic(err)
	}
	data := map[string]any{}
	for path, field := range t.fields {
		if key, ok := strings.CutPrefix(path, "data:"); ok {
			data[key] = field.value
		}
	}
	o.Object["data"] = data
	o.Object["status"] = map[string]any{"ready": t.readyAt == t.generation}
	return o
}

// flatten returns the fields of a manifest by path.
func flatten(body []byte) (map[string]string, error) {
	var parsed struct {
		Metadata struct{ Labels, Annotations map[string]string }
		Data     map[string]string
	}
	if err := json.Unmarshal(body, &parsed); err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for kind, values := range map[string]map[string]string{
		"labels": parsed.Metadata.Labels, "annotations": parsed.Metadata.Annotations, "data": parsed.Data,
	} {
		for key, value := range values {
			fields[kind+":"+key] = value
		}
	}
	return fields, nil
}

// alive fails after the process was killed.
func (m *model) alive() error {
	if m.dead {
		return errCrash
	}
	return nil
}

// write counts a write. It returns whether the write happens, and an error if the writer gets no
// answer.
func (m *model) write(verb string, ref manifest.Ref) (happens bool, err error) {
	if err := m.alive(); err != nil {
		return false, err
	}
	m.writes = append(m.writes, verb+" "+ref.ID.String())
	if m.refuse != nil {
		if err := m.refuse(verb, ref); err != nil {
			return false, err
		}
	}
	if m.fuse == 0 {
		m.dead = true
		return m.lastWriteLands, errCrash
	}
	if m.fuse > 0 {
		m.fuse--
	}
	return true, nil
}

func resourceOf(ref manifest.Ref) schema.GroupResource {
	return schema.GroupResource{Group: ref.Group, Resource: strings.ToLower(ref.Kind) + "s"}
}

func (m *model) Apply(_ context.Context, ref manifest.Ref, body []byte, o targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.DryRun {
		if err := m.alive(); err != nil {
			return nil, err
		}
		verb := "try"
		if o.Anew {
			verb = "anew"
		}
		m.reads = append(m.reads, verb+" "+ref.ID.String())
		if m.refuse != nil {
			if err := m.refuse(verb, ref); err != nil {
				return nil, err
			}
		}
		if o.Anew && m.objects[ref.ID] != nil {
			return nil, apierrors.NewAlreadyExists(resourceOf(ref), ref.Name)
		}
		return m.apply(ref, body, o)
	}
	happens, crash := m.write("apply", ref)
	if !happens {
		return nil, crash
	}
	live, err := m.apply(ref, body, o)
	if crash != nil {
		return nil, crash
	}
	return live, err
}

func (m *model) apply(ref manifest.Ref, body []byte, o targetclient.ApplyOptions) (*metav1.PartialObjectMetadata, error) {
	fields, err := flatten(body)
	if err != nil {
		return nil, err
	}
	have := m.objects[ref.ID]
	if err := m.applies(ref, have, o.CreateOnly); err != nil && !(o.Merge && targetclient.IsVersionGone(err)) {
		return nil, err // an update, like a merge patch, does not read managedFields
	}
	conflict := func(why string) error { return apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New(why)) }
	switch {
	case o.CreateOnly && have != nil:
		return nil, conflict("it exists")
	case !o.CreateOnly && have == nil:
		return nil, conflict("it does not exist")
	case !o.CreateOnly && (have.uid != o.UID || fmt.Sprint(have.version) != o.ResourceVersion):
		return nil, conflict("it is another one")
	}
	now := &thing{ref: ref, fields: map[string]owned{}, generation: 1, uid: types.UID(fmt.Sprintf("uid-%d", m.version+1))}
	if !counts(ref.Kind) {
		now.generation = 0
	}
	if have != nil {
		now = have.clone()
	}
	if !o.DryRun {
		m.applied[now.uid] = true
		if m.released[now.uid] {
			m.released[now.uid] = false
		}
	}
	if have != nil && len(have.owners()) == 0 {
		// The server assigns fields that existed before managedFields to a placeholder manager.
		for path, field := range now.fields {
			now.fields[path] = owned{field.value, []string{managedfields.BeforeFirstApply}}
		}
	}
	changed := false
	if o.Merge {
		now.merges(body, fields, "patch")
		changed = true
	} else {
		changed = now.takes(fields, o.FieldManager)
	}
	changed = now.writtenIn(ref.Version, o.FieldManager) || changed
	if have != nil && !changed {
		return have.partial(), nil
	}
	if m.webhook != nil {
		m.webhook(now)
	}
	if have != nil && counts(ref.Kind) && !maps.Equal(valuesOf(have, "data:"), valuesOf(now, "data:")) {
		now.generation++
	}
	if !o.DryRun {
		m.store(ref.ID, now)
	}
	return now.partial(), nil
}

func (t *thing) owners() []string {
	var all []string
	for _, field := range t.fields {
		all = append(all, field.by...)
	}
	return all
}

func (m *model) Reassign(_ context.Context, ref manifest.Ref, p targetclient.Precondition, entries []metav1.ManagedFieldsEntry) (*metav1.PartialObjectMetadata, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	happens, crash := m.write("reassign", ref)
	if !happens {
		return nil, crash
	}
	used, err := m.reach(ref)
	if err != nil {
		return nil, errors.Join(crash, err)
	}
	have, err := m.guarded(ref, p)
	if err != nil {
		return nil, errors.Join(crash, err)
	}
	owners, err := managers(entries)
	if err != nil {
		return nil, err
	}
	now := have.clone()
	now.versions = m.presentIn(used, entries)
	for path, field := range now.fields {
		now.fields[path] = owned{field.value, owners[path]}
	}
	m.store(ref.ID, now)
	return now.partialIn(used), crash
}

// takes sets the fields of a manager, and removes fields that only this manager had.
func (t *thing) takes(fields map[string]string, manager string) (changed bool) {
	for path, field := range t.fields {
		if _, wanted := fields[path]; wanted || !slices.Contains(field.by, manager) {
			continue
		}
		changed = true
		field.by = slices.DeleteFunc(slices.Clone(field.by), func(by string) bool { return by == manager })
		if len(field.by) == 0 {
			delete(t.fields, path)
		} else {
			t.fields[path] = field
		}
	}
	for path, value := range fields {
		have, ok := t.fields[path]
		switch {
		case ok && have.value == value && slices.Contains(have.by, manager):
			continue
		case ok && have.value == value:
			t.fields[path] = owned{value, append(slices.Clone(have.by), manager)}
		default:
			t.fields[path] = owned{value, []string{manager}}
		}
		changed = true
	}
	return changed
}

// merges applies fields as a JSON merge patch, and removes the fields of data that are null in it.
func (t *thing) merges(patch []byte, fields map[string]string, manager string) {
	var nulls struct{ Data map[string]*string }
	if err := json.Unmarshal(patch, &nulls); err != nil {
		panic(err) // flatten has parsed it before
	}
	for path, value := range fields {
		if key, isData := strings.CutPrefix(path, "data:"); isData && nulls.Data[key] == nil {
			delete(t.fields, path)
			continue
		}
		t.set(path, value, manager)
	}
}

func valuesOf(t *thing, prefix string) map[string]string {
	values := map[string]string{}
	for path, field := range t.fields {
		if strings.HasPrefix(path, prefix) {
			values[path] = field.value
		}
	}
	return values
}

func (m *model) guarded(ref manifest.Ref, p targetclient.Precondition) (*thing, error) {
	have := m.objects[ref.ID]
	switch {
	case have == nil:
		return nil, apierrors.NewNotFound(resourceOf(ref), ref.Name)
	case have.uid != p.UID || fmt.Sprint(have.version) != p.ResourceVersion:
		return nil, apierrors.NewConflict(resourceOf(ref), ref.Name, errors.New("it is another one"))
	}
	return have, nil
}

// Delete deletes an object, or marks it for deletion while it has finalizers.
func (m *model) Delete(_ context.Context, ref manifest.Ref, p targetclient.Precondition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	happens, crash := m.write("delete", ref)
	if !happens {
		return crash
	}
	if _, err := m.reach(ref); err != nil {
		return errors.Join(crash, err)
	}
	have, err := m.guarded(ref, p)
	if err == nil {
		m.note("delete", have)
		m.deleted[have.uid] = true
		m.remove(have)
	}
	return errors.Join(crash, err)
}

func (m *model) note(verb string, have *thing) {
	if m.taking != nil {
		m.taking(verb, have)
	}
}

func (m *model) remove(have *thing) {
	if len(have.finalizers) == 0 {
		m.store(have.ref.ID, nil)
		return
	}
	now := have.clone()
	now.deleting = true
	m.store(have.ref.ID, now)
}

// Release removes labels and annotations, and the manager of the other fields.
func (m *model) Release(_ context.Context, ref manifest.Ref, p targetclient.Precondition, marks targetclient.Marks) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	happens, crash := m.write("release", ref)
	if !happens {
		return crash
	}
	used, err := m.reach(ref)
	if err != nil {
		return errors.Join(crash, err)
	}
	have, err := m.guarded(ref, p)
	if err == nil {
		m.note("release", have)
		now := have.clone()
		now.versions = m.presentIn(used, have.metadata().ManagedFields)
		m.released[now.uid] = true
		for _, key := range marks.Labels {
			delete(now.fields, "labels:"+key)
		}
		for _, key := range marks.Annotations {
			delete(now.fields, "annotations:"+key)
		}
		for path, field := range now.fields {
			now.fields[path] = owned{field.value, slices.DeleteFunc(slices.Clone(field.by), func(by string) bool { return by == marks.FieldManager })}
		}
		m.store(ref.ID, now)
	}
	return errors.Join(crash, err)
}

func (m *model) read(ref manifest.Ref) (have *thing, used manifest.Ref, err error) {
	if err := m.alive(); err != nil {
		return nil, ref, err
	}
	m.reads = append(m.reads, "get "+ref.ID.String())
	if used, err = m.reach(ref); err != nil {
		return nil, ref, err
	}
	if have = m.objects[ref.ID]; have == nil {
		return nil, ref, apierrors.NewNotFound(resourceOf(ref), ref.Name)
	}
	return have, used, nil
}

func (m *model) Read(_ context.Context, ref manifest.Ref) (*unstructured.Unstructured, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ref.IsDefinition() {
		return m.definition(ref.Name)
	}
	have, used, err := m.read(ref)
	if m.unreadable != nil {
		return nil, m.unreadable
	}
	if err != nil {
		return nil, err
	}
	live := have.whole()
	live.SetAPIVersion(used.APIVersion())
	if volume := m.volumes[ref.ID]; volume != "" {
		live.Object["spec"] = map[string]any{"volumeName": volume}
	}
	return live, nil
}

// InNamespace returns the contents that a test sets, besides the chain's objects.
func (m *model) InNamespace(_ context.Context, namespace, _ string) ([]metav1.PartialObjectMetadata, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads = append(m.reads, "inside "+namespace)
	found := slices.Clone(m.inside[namespace])
	for id, have := range m.objects {
		if id.Namespace == namespace {
			found = append(found, *have.partial())
		}
	}
	return found, m.insideError
}

func (m *model) ReadMetadata(_ context.Context, ref manifest.Ref) (*metav1.PartialObjectMetadata, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, used, err := m.read(ref)
	if err != nil {
		return nil, err
	}
	return have.partialIn(used), nil
}

// Get behaves like watches: objects without the label are visible only by name.
func (m *model) Get(id manifest.ID) (observe.Observation, observe.Presence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.watched[id]
	if m.unwatched(id) {
		return observe.Observation{ID: id}, observe.Unknown
	}
	if have == nil || !m.isNamed(id) && have.fields["labels:"+testNames().ChainLabel].value == "" {
		return observe.Observation{ID: id, ResourceVersion: fmt.Sprint(m.upTo(id))}, observe.Absent
	}
	seen := testNames().Observe(have.partial())
	seen.Object = have.whole()
	if m.isNamed(id) {
		seen.Managed = append([]metav1.ManagedFieldsEntry{}, have.metadata().ManagedFields...)
	}
	return seen, observe.Present
}

// Want sets the objects to watch by name; all kinds are watched by label.
func (m *model) Want(owner string, interests ...observe.Interest) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.named == nil {
		m.named = map[string]map[manifest.ID]bool{}
	}
	before := m.named[owner]
	m.named[owner] = map[manifest.ID]bool{}
	for _, i := range interests {
		m.named[owner][i.ID] = i.ByName
		// A new watch reports its current objects.
		m.news = m.news || i.ByName && !before[i.ID]
	}
	m.want(owner, interests)
}

// isNamed reports whether any owner watches the object by name.
func (m *model) isNamed(id manifest.ID) bool {
	for _, wanted := range m.named {
		if wanted[id] {
			return true
		}
	}
	return false
}

func (m *model) Drop(string) {}

// Trouble returns an error for a kind that is not served.
func (m *model) Trouble(id manifest.ID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.unwatched(id) {
		return &targetclient.KindUnknownError{Kind: id.GroupKind().WithVersion("")}
	}
	return nil
}

// alter changes an object as another writer.
func (m *model) alter(id manifest.ID, change func(*thing)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	have := m.objects[id]
	if have == nil {
		return
	}
	now := have.clone()
	change(now)
	if counts(id.Kind) && !maps.Equal(valuesOf(have, "data:"), valuesOf(now, "data:")) {
		now.generation++
	}
	m.store(id, now)
}

// erase deletes an object as another writer.
func (m *model) erase(id manifest.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if have := m.objects[id]; have != nil {
		m.store(id, nil)
	}
}

// place creates an object of another owner.
func (m *model) place(ref manifest.Ref, data map[string]string) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &thing{ref: ref, fields: map[string]owned{}, uid: types.UID(fmt.Sprintf("foreign-%d", m.version))}
	if counts(ref.Kind) {
		t.generation = 1
	}
	for key, value := range data {
		t.set("data:"+key, value, "somebody")
	}
	m.store(ref.ID, t)
	return t.uid
}

// spent returns the requests since the last call: writes, then reads and dry-runs.
func (m *model) spent() (writes, reads []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	writes, reads, m.writes, m.reads = m.writes, m.reads, nil, nil
	return writes, reads
}
