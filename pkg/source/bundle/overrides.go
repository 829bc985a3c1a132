package bundle

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

// override applies the user's configuration to a Deployment. Other fields stay.
func override(deployment, configured map[string]any) {
	if len(configured) == 0 {
		return
	}
	spec := child(deployment, "spec")
	template := child(spec, "template")
	pod := child(template, "spec")
	if selector, found := configured["nodeSelector"]; found {
		pod["nodeSelector"] = selector
	}
	extend(pod, "tolerations", configured["tolerations"], equality.Semantic.DeepEqual)
	extend(pod, "volumes", configured["volumes"], sameName)
	if affinity, found := configured["affinity"].(map[string]any); found {
		overrideAffinity(pod, affinity)
	}
	for _, container := range containers(pod) {
		if resources, found := configured["resources"]; found {
			container["resources"] = resources
		}
		extend(container, "env", configured["env"], sameName)
		extend(container, "envFrom", configured["envFrom"], equality.Semantic.DeepEqual)
		overrideMounts(container, list(configured["volumeMounts"]))
	}
	if annotations, found := configured["annotations"].(map[string]any); found && len(annotations) > 0 {
		addMissing(child(child(deployment, "metadata"), "annotations"), annotations)
		addMissing(child(child(template, "metadata"), "annotations"), annotations)
	}
}

// extend adds items to a list. An item replaces the same item of the list.
func extend(of map[string]any, key string, more any, same func(a, b any) bool) {
	items := slices.Clone(list(of[key]))
	for _, one := range list(more) {
		if i := slices.IndexFunc(items, func(other any) bool { return same(one, other) }); i >= 0 {
			items[i] = one
		} else {
			items = append(items, one)
		}
	}
	if len(items) > 0 {
		of[key] = items
	}
}

func sameName(a, b any) bool {
	first, _ := a.(map[string]any)
	second, _ := b.(map[string]any)
	return first["name"] != nil && first["name"] == second["name"]
}

// overrideMounts adds mounts. It removes the container's mounts of the same volume or path, because
// the user has moved or replaced them.
func overrideMounts(container map[string]any, more []any) {
	if len(more) == 0 {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(list(container["volumeMounts"])), func(item any) bool {
		mount, _ := item.(map[string]any)
		return slices.ContainsFunc(more, func(other any) bool {
			with, _ := other.(map[string]any)
			return with["name"] == mount["name"] || with["mountPath"] == mount["mountPath"]
		})
	})
	container["volumeMounts"] = append(kept, more...)
}

// overrideAffinity replaces the configured kinds of affinity. It removes a kind with an empty
// value, and all kinds if the configuration is empty.
func overrideAffinity(pod, configured map[string]any) {
	if len(configured) == 0 {
		delete(pod, "affinity")
		return
	}
	affinity := child(pod, "affinity")
	for kind, value := range configured {
		if one, _ := value.(map[string]any); len(one) == 0 {
			delete(affinity, kind)
		} else {
			affinity[kind] = value
		}
	}
	if len(affinity) == 0 {
		delete(pod, "affinity")
	}
}

func addMissing(to, more map[string]any) {
	for key, value := range more {
		if _, present := to[key]; !present {
			to[key] = value
		}
	}
}
