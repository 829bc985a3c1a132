package review

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/diff/words"
	"github.com/penstock-project/penstock/pkg/note"
)

// definition adds notes about values that a CustomResourceDefinition no longer accepts.
func (w *writer) definition() {
	if !w.stays() {
		return
	}
	old, new := versionsOf(w.old), versionsOf(w.new)
	w.versions(old, new)
	if w.delta.Changed("spec", "names", "kind") {
		w.add(note.Critical, note.VersionLost, "its kind changes from %s to %s: clients of the old one break",
			w.old.At("spec", "names", "kind").Str(), w.new.At("spec", "names", "kind").Str())
	}
	if w.delta.Changed("spec", "scope") {
		w.add(note.Critical, note.Narrowed, words.ScopeChanges, w.old.At("spec", "scope").Str(), w.new.At("spec", "scope").Str())
	}
	if w.delta.Changed("spec", "conversion", "strategy") {
		w.add(note.Warning, note.StorageVersion, "versions are converted in another way")
	}
	for _, after := range new {
		before := slices.IndexFunc(old, func(v version) bool { return v.name == after.name })
		if before < 0 {
			continue
		}
		for _, name := range []string{"status", "scale"} {
			if old[before].subresources.Field(name) != nil && after.subresources.Field(name) == nil {
				w.add(note.Warning, note.Narrowed, "%s: the subresource %s is removed", after.name, name)
			}
		}
		n := narrowing{version: after.name, stop: w.Stop}
		n.compare(&tree.Path{}, old[before].schema, after.schema)
		n.write(w)
	}
}

type version struct {
	name                 string
	served, storage      bool
	schema, subresources *tree.Node
}

func versionsOf(definition *tree.Node) []version {
	spec := definition.Field("spec")
	common := version{schema: spec.At("validation", "openAPIV3Schema"), subresources: spec.Field("subresources")}
	var all []version
	for _, item := range spec.Field("versions").Items() {
		v := version{
			name:         item.Field("name").Str(),
			served:       item.Field("served").IsTrue(),
			storage:      item.Field("storage").IsTrue(),
			schema:       item.At("schema", "openAPIV3Schema"),
			subresources: item.Field("subresources"),
		}
		if v.schema == nil {
			v.schema = common.schema
		}
		if v.subresources == nil {
			v.subresources = common.subresources
		}
		all = append(all, v)
	}
	if name := spec.Field("version").Str(); len(all) == 0 && name != "" {
		common.name, common.served, common.storage = name, true, true
		all = append(all, common)
	}
	return all
}

func (w *writer) versions(old, new []version) {
	storage := func(versions []version) string {
		i := slices.IndexFunc(versions, func(v version) bool { return v.storage })
		if i < 0 {
			return ""
		}
		return versions[i].name
	}
	for _, before := range old {
		after := slices.IndexFunc(new, func(v version) bool { return v.name == before.name })
		switch {
		case after < 0 && before.storage:
			w.add(note.Critical, note.VersionLost, words.StoredVersionRemoved, before.name)
		case after < 0:
			w.add(note.Critical, note.VersionLost, "version %s is removed", before.name)
		case before.served && !new[after].served:
			w.add(note.Critical, note.VersionLost, "version %s is no longer served", before.name)
		}
	}
	for _, after := range new {
		if !slices.ContainsFunc(old, func(v version) bool { return v.name == after.name }) {
			w.add(note.Info, note.StorageVersion, "new version %s", after.name)
		}
	}
	if was, is := storage(old), storage(new); was != is {
		w.add(note.Warning, note.StorageVersion, "objects are stored in version %s, were in %s: existing objects stay as they are until they are written again", is, was)
	}
}
