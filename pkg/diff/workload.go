package diff

import (
	"fmt"
	"slices"
	"strings"
)

// workload is about pods: their images, what they may do, and whether they are
// replaced.
func (w *words) workload(template []string) {
	before, after := w.old.at(template...).at("spec"), w.new.at(template...).at("spec")
	if w.change.Kind == Changed {
		w.images(before, after)
		w.restart()
	}
	if gained := gained(privileges(before), privileges(after)); after != nil && len(gained) > 0 {
		w.add(Warning, ReasonPrivilege, "its pods gain: %s", some(gained))
	}
}

// container is one of a pod, by the list it is in.
type container struct{ list, name string }

func (c container) String() string {
	if c.list == "containers" {
		return "container " + c.name
	}
	return strings.TrimSuffix(c.list, "Containers") + " container " + c.name
}

func containers(pod *node) (all map[container]*node, order []container) {
	all = make(map[container]*node)
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, item := range pod.field(list).list() {
			key := container{list, item.field("name").str()}
			if all[key] == nil {
				order = append(order, key)
			}
			all[key] = item
		}
	}
	return all, order
}

func (w *words) images(before, after *node) {
	old, oldOrder := containers(before)
	new, newOrder := containers(after)
	for _, key := range newOrder {
		image := new[key].field("image").str()
		if old[key] == nil {
			w.add(Info, ReasonImage, "new %s, image %s", key.String(), image)
			continue
		}
		w.image("image of "+key.String(), old[key].field("image").str(), image)
		w.relatedImages(old[key], new[key])
	}
	for _, key := range oldOrder {
		if new[key] == nil {
			w.add(Info, ReasonImage, "%s is removed, image %s", key.String(), old[key].field("image").str())
		}
	}
}

func (w *words) image(what, old, new string) {
	if old == new {
		return
	}
	severity, remark := Info, phrase("")
	if repository(old) != repository(new) {
		severity, remark = Warning, " (another repository)"
	}
	w.add(severity, ReasonImage, "%s: %s -> %s%s", what, old, new, remark)
}

// repository is an image without tag and digest, with the registry that is meant
// where none is named.
func repository(image string) string {
	name, _, _ := strings.Cut(image, "@")
	if at := strings.LastIndex(name, ":"); at > strings.LastIndex(name, "/") {
		name = name[:at]
	}
	registry, _, ok := strings.Cut(name, "/")
	switch {
	case !ok:
		return "docker.io/library/" + name
	case registry != "localhost" && !strings.ContainsAny(registry, ".:"):
		return "docker.io/" + name
	}
	return name
}

// relatedImages are those that an operator starts by itself: by convention they
// are in variables of its environment.
func (w *words) relatedImages(before, after *node) {
	const prefix = "RELATED_IMAGE_"
	old := make(map[string]string)
	for _, variable := range before.field("env").list() {
		old[variable.field("name").str()] = variable.field("value").str()
	}
	for _, variable := range after.field("env").list() {
		name, value := variable.field("name").str(), variable.field("value").str()
		if was, ok := old[name]; ok && strings.HasPrefix(name, prefix) {
			w.image(name, was, value)
		}
	}
}

// restart says how pods are replaced when their template changed.
func (w *words) restart() {
	if !w.delta.changed("spec", "template") {
		return
	}
	switch w.change.ID.GroupKind().String() {
	case "Deployment.apps":
		if w.new.at("spec", "strategy", "type").str() == "Recreate" {
			w.add(Warning, ReasonRestart, "the pod template changed: all its pods stop before new ones start")
			return
		}
	case "StatefulSet.apps", "DaemonSet.apps":
		if w.new.at("spec", "updateStrategy", "type").str() == "OnDelete" {
			w.add(Info, ReasonRestart, "the pod template changed: a pod takes the change when somebody deletes it")
			return
		}
	default:
		return
	}
	w.add(Info, ReasonRestart, "the pod template changed: its pods are replaced, one after the other")
}

// privileges are what a pod may do beyond its own walls.
func privileges(pod *node) []string {
	var all []string
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if pod.field(name).isTrue() {
			all = append(all, name)
		}
	}
	for _, volume := range pod.field("volumes").list() {
		if host := volume.at("hostPath", "path").str(); host != "" {
			all = append(all, "the host's files at "+text(host))
		}
	}
	byKey, order := containers(pod)
	for _, key := range order {
		context := byKey[key].field("securityContext")
		if context.field("privileged").isTrue() {
			all = append(all, fmt.Sprintf("privileged (%s)", text(key.String())))
		}
		if user := context.field("runAsUser"); user != nil && user.scalar == int64(0) {
			all = append(all, fmt.Sprintf("root (%s)", text(key.String())))
		}
		for _, capability := range context.at("capabilities", "add").list() {
			all = append(all, fmt.Sprintf("capability %s (%s)", text(capability.str()), text(key.String())))
		}
	}
	return all
}

// gained are the things that are in new and not in old.
func gained(old, new []string) []string {
	had := make(map[string]bool, len(old))
	for _, thing := range old {
		had[thing] = true
	}
	return slices.DeleteFunc(slices.Clone(new), func(thing string) bool { return had[thing] })
}
