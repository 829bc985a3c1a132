package diff

import (
	"slices"
)

// definition says what a CustomResourceDefinition no longer accepts.
func (w *words) definition() {
	if w.change.Kind != Changed {
		return
	}
	old, new := versionsOf(w.old), versionsOf(w.new)
	w.versions(old, new)
	if w.delta.changed("spec", "names", "kind") {
		w.add(Critical, ReasonVersionLost, "its kind changes from %s to %s: clients of the old one break",
			w.old.at("spec", "names", "kind").str(), w.new.at("spec", "names", "kind").str())
	}
	if w.delta.changed("spec", "scope") {
		w.add(Critical, ReasonNarrowed, "its scope changes from %s to %s", w.old.at("spec", "scope").str(), w.new.at("spec", "scope").str())
	}
	if w.delta.changed("spec", "conversion", "strategy") {
		w.add(Warning, ReasonStorageVersion, "versions are converted in another way")
	}
	for _, after := range new {
		before := slices.IndexFunc(old, func(v version) bool { return v.name == after.name })
		if before < 0 {
			continue
		}
		for _, name := range []string{"status", "scale"} {
			if old[before].subresources.field(name) != nil && after.subresources.field(name) == nil {
				w.add(Warning, ReasonNarrowed, "%s: the subresource %s is removed", after.name, name)
			}
		}
		n := narrowing{version: after.name, stop: w.stop}
		n.compare(&path{}, old[before].schema, after.schema)
		n.tell(w)
	}
}

// version is one of a CustomResourceDefinition, of apiextensions v1 or v1beta1.
type version struct {
	name                 string
	served, storage      bool
	schema, subresources *node
}

func versionsOf(definition *node) []version {
	spec := definition.field("spec")
	common := version{schema: spec.at("validation", "openAPIV3Schema"), subresources: spec.field("subresources")}
	var all []version
	for _, item := range spec.field("versions").list() {
		v := version{
			name:         item.field("name").str(),
			served:       item.field("served").isTrue(),
			storage:      item.field("storage").isTrue(),
			schema:       item.at("schema", "openAPIV3Schema"),
			subresources: item.field("subresources"),
		}
		if v.schema == nil {
			v.schema = common.schema
		}
		if v.subresources == nil {
			v.subresources = common.subresources
		}
		all = append(all, v)
	}
	if name := spec.field("version").str(); len(all) == 0 && name != "" {
		common.name, common.served, common.storage = name, true, true
		all = append(all, common)
	}
	return all
}

func (w *words) versions(old, new []version) {
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
			w.add(Critical, ReasonVersionLost, "version %s is removed, in which objects are stored: the API server refuses that while it is among status.storedVersions", before.name)
		case after < 0:
			w.add(Critical, ReasonVersionLost, "version %s is removed", before.name)
		case before.served && !new[after].served:
			w.add(Critical, ReasonVersionLost, "version %s is no longer served", before.name)
		}
	}
	for _, after := range new {
		if !slices.ContainsFunc(old, func(v version) bool { return v.name == after.name }) {
			w.add(Info, ReasonStorageVersion, "new version %s", after.name)
		}
	}
	if was, is := storage(old), storage(new); was != is {
		w.add(Warning, ReasonStorageVersion, "objects are stored in version %s, were in %s: those that exist stay as they are until they are written again", is, was)
	}
}
