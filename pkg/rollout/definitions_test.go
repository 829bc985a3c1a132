package rollout

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// definitions are the CustomResourceDefinitions of a model. A kind without a definition is served
// in every version.
type definitions struct {
	kinds map[schema.GroupKind]defined
	// versions in which each owner watches kinds.
	versions map[string]map[schema.GroupKind]map[string]bool
}

// defined is the state of a CustomResourceDefinition. The zero value is a deleted definition.
type defined struct {
	// versions that it lists, and whether they are served.
	versions map[string]bool
	// away is true while the conversion webhook is unavailable: requests that need it fail with a
	// 500.
	away bool
}

func widgets() schema.GroupKind { return schema.GroupKind{Group: "example.com", Kind: "Widget"} }

// define sets or deletes a definition; a deletion also deletes its objects. All watches of the kind
// restart.
func (m *model) define(kind schema.GroupKind, now defined) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kinds == nil {
		m.kinds = map[schema.GroupKind]defined{}
	}
	before, known := m.kinds[kind]
	m.kinds[kind] = now
	for _, wanted := range m.versions {
		for version := range wanted[kind] {
			m.news = m.news || !known || before.versions[version] != now.versions[version]
		}
	}
	if len(now.versions) > 0 {
		return
	}
	for id := range maps.Clone(m.objects) {
		if id.GroupKind() == kind {
			m.store(id, nil)
		}
	}
}

func (m *model) reach(ref manifest.Ref) (manifest.Ref, error) {
	definition, known := m.kinds[ref.GroupKind()]
	switch {
	case !known:
		return ref, nil
	case definition.away:
		return ref, conversionFails(ref)
	case definition.versions[ref.Version]:
		return ref, nil
	}
	for _, version := range slices.Sorted(maps.Keys(definition.versions)) {
		if definition.versions[version] {
			ref.Version = version
			return ref, nil
		}
	}
	return ref, &targetclient.KindUnknownError{Kind: ref.GroupVersionKind()}
}

func conversionFails(ref manifest.Ref) error {
	return apierrors.NewInternalError(errors.New("conversion webhook for " + ref.GroupVersionKind().String() + " failed: connection refused"))
}

// applies returns the error of an apply that fails regardless of its content.
func (m *model) applies(ref manifest.Ref, have *thing, createOnly bool) error {
	definition, known := m.kinds[ref.GroupKind()]
	switch {
	case !known:
		return nil
	case !definition.versions[ref.Version]:
		return &targetclient.KindUnknownError{Kind: ref.GroupVersionKind()}
	case definition.away:
		return conversionFails(ref)
	case have == nil:
		return nil
	}
	for _, by := range have.owners() {
		version := have.entryOf(by)
		if _, listed := definition.versions[version.Version]; listed {
			continue
		}
		if createOnly {
			return apierrors.NewAlreadyExists(resourceOf(ref), ref.Name)
		}
		return &targetclient.VersionGoneError{Version: version}
	}
	return nil
}

// presentIn returns the version of each manager's entry. The server replaces versions that are not
// served with the version of the request.
func (m *model) presentIn(used manifest.Ref, entries []metav1.ManagedFieldsEntry) map[string]string {
	versions := map[string]string{}
	for _, entry := range entries {
		version, err := schema.ParseGroupVersion(entry.APIVersion)
		if err != nil {
			panic(err) // written by the model
		}
		by := entry.Manager
		if entry.Subresource != "" {
			by += "@" + entry.Subresource
		}
		versions[by] = version.Version
		if definition, known := m.kinds[used.GroupKind()]; known && !definition.versions[version.Version] {
			versions[by] = used.Version
		}
	}
	return versions
}

// entryOf returns the version of a manager's entry.
func (t *thing) entryOf(by string) schema.GroupVersion {
	if version, written := t.versions[by]; written {
		return schema.GroupVersion{Group: t.ref.Group, Version: version}
	}
	return schema.GroupVersion{Group: t.ref.Group, Version: t.ref.Version}
}

// writtenIn records the version in which a manager wrote, and reports whether it changed.
func (t *thing) writtenIn(version, by string) bool {
	if t.entryOf(by).Version == version {
		return false
	}
	t.versions = maps.Clone(t.versions)
	if t.versions == nil {
		t.versions = map[string]string{}
	}
	t.versions[by] = version
	return true
}

// partialIn returns the object as read in a version.
func (t *thing) partialIn(ref manifest.Ref) *metav1.PartialObjectMetadata {
	live := t.partial()
	live.APIVersion = ref.APIVersion()
	return live
}

func (m *model) Mapping(_ context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if definition, known := m.kinds[kind.GroupKind()]; known && !definition.versions[kind.Version] {
		return nil, &targetclient.KindUnknownError{Kind: kind}
	}
	return &meta.RESTMapping{GroupVersionKind: kind, Scope: meta.RESTScopeNamespace}, nil
}

// Served returns the resource of a kind in any served version.
func (m *model) Served(_ context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	used, err := m.reach(manifest.Ref{ID: manifest.ID{Group: kind.Group, Kind: kind.Kind}, Version: kind.Version})
	if err != nil {
		return nil, err
	}
	return &meta.RESTMapping{GroupVersionKind: used.GroupVersionKind(), Scope: meta.RESTScopeNamespace}, nil
}

// HasStatus returns false: the kinds of the model have no status.
func (m *model) HasStatus(context.Context, schema.GroupVersionKind) (bool, error) { return false, nil }

// Instances lists definitions. No test has instances of a definition that the chain owns.
func (m *model) Instances(_ context.Context, kind manifest.Ref, _ int64) ([]metav1.PartialObjectMetadata, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []metav1.PartialObjectMetadata
	for defines, definition := range m.kinds {
		if kind.IsDefinition() && len(definition.versions) > 0 {
			found = append(found, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(defines.Kind) + "s." + defines.Group}})
		}
	}
	return found, nil
}

func (m *model) definition(name string) (*unstructured.Unstructured, error) {
	for kind := range m.kinds {
		if strings.ToLower(kind.Kind)+"s."+kind.Group == name {
			return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"names": map[string]any{"kind": kind.Kind}}}}, nil
		}
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "customresourcedefinitions"}, name)
}

func (m *model) want(owner string, interests []observe.Interest) {
	if m.versions == nil {
		m.versions = map[string]map[schema.GroupKind]map[string]bool{}
	}
	before := m.versions[owner]
	m.versions[owner] = map[schema.GroupKind]map[string]bool{}
	for _, i := range interests {
		kind := i.ID.GroupKind()
		if _, defined := m.kinds[kind]; !defined {
			continue
		}
		if m.versions[owner][kind] == nil {
			m.versions[owner][kind] = map[string]bool{}
		}
		m.versions[owner][kind][i.Version] = true
		// A new watch reports its current objects.
		m.news = m.news || !before[kind][i.Version]
	}
}

// unwatched reports whether the object's kind is watched in no served version.
func (m *model) unwatched(id manifest.ID) bool {
	definition, known := m.kinds[id.GroupKind()]
	if !known {
		return false
	}
	for _, wanted := range m.versions {
		for version := range wanted[id.GroupKind()] {
			if definition.versions[version] {
				return false
			}
		}
	}
	return true
}

// shows reports whether a watch shows the object.
func (m *model) shows(t *thing) bool {
	if t == nil || m.unwatched(t.ref.ID) {
		return false
	}
	return m.isNamed(t.ref.ID) || t.fields["labels:"+testNames().ChainLabel].value != ""
}
