package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/printable"
	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// workload is about pods: their images, what they may do, and whether they are
// replaced.
func (w *writer) workload(template []string) {
	before, after := w.old.At(template...).At("spec"), w.new.At(template...).At("spec")
	if w.stays() {
		w.images(before, after)
		w.account(before, after)
		w.restart()
		w.replicas()
	}
	if gained := gained(privileges(before), privileges(after)); after != nil && len(gained) > 0 {
		w.add(note.Warning, note.Privilege, "its pods gain: %s", enumerate(gained))
	}
}

// TemplatePath leads from a workload to its pod template; nil for what is none.
func TemplatePath(id manifest.ID) []string {
	switch id.GroupKind().String() {
	case "Pod":
		return []string{}
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "ReplicationController":
		return []string{"spec", "template"}
	case "CronJob.batch":
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return nil
}

// container names a container of a pod: by the list it is in, and its name.
type container struct{ list, name string }

func (c container) String() string {
	if c.list == "containers" {
		return "container " + c.name
	}
	return strings.TrimSuffix(c.list, "Containers") + " container " + c.name
}

func containers(pod *tree.Node) (all map[container]*tree.Node, order []container) {
	all = make(map[container]*tree.Node)
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, item := range pod.Field(list).Items() {
			key := container{list, item.Field("name").Str()}
			if all[key] == nil {
				order = append(order, key)
			}
			all[key] = item
		}
	}
	return all, order
}

func (w *writer) images(before, after *tree.Node) {
	old, oldOrder := containers(before)
	new, newOrder := containers(after)
	known := make(map[string]bool)
	for _, one := range old {
		known[repository(one.Field("image").Str())] = true
	}
	for _, key := range newOrder {
		image := new[key].Field("image").Str()
		if old[key] == nil {
			severity, remark := note.Info, phrase("")
			if !known[repository(image)] {
				severity, remark = note.Warning, anotherRepository
			}
			w.add(severity, note.Image, "new %s, image %s%s", key.String(), image, remark)
			continue
		}
		w.image("image of "+key.String(), old[key].Field("image").Str(), image)
		w.relatedImages(old[key], new[key])
	}
	for _, key := range oldOrder {
		if new[key] == nil {
			w.add(note.Info, note.Image, "%s is removed, image %s", key.String(), old[key].Field("image").Str())
		}
	}
}

func (w *writer) image(what, old, new string) {
	if old == new {
		return
	}
	severity, remark := note.Info, phrase("")
	if repository(old) != repository(new) {
		severity, remark = note.Warning, anotherRepository
		if digest := digestOf(new); digest != "" && digest == digestOf(old) {
			remark = " (another repository, the same digest)"
		}
	}
	w.add(severity, note.Image, "%s: %s -> %s%s", what, old, new, remark)
}

const anotherRepository phrase = " (another repository)"

// digestOf is the digest that an image names, empty without one.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// account says that pods get the rights of another ServiceAccount.
func (w *writer) account(before, after *tree.Node) {
	of := func(pod *tree.Node) string {
		return cmp.Or(pod.Field("serviceAccountName").Str(), pod.Field("serviceAccount").Str(), "default")
	}
	if was, is := of(before), of(after); was != is {
		w.add(note.Warning, note.Privilege, "its pods run as ServiceAccount %s, and ran as %s", is, was)
	}
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
func (w *writer) relatedImages(before, after *tree.Node) {
	const prefix = "RELATED_IMAGE_"
	old := make(map[string]string)
	for _, variable := range before.Field("env").Items() {
		old[variable.Field("name").Str()] = variable.Field("value").Str()
	}
	for _, variable := range after.Field("env").Items() {
		name, value := variable.Field("name").Str(), variable.Field("value").Str()
		if was, ok := old[name]; ok && strings.HasPrefix(name, prefix) {
			w.image(name, was, value)
		}
	}
}

// restart says how pods are replaced when their template changed.
func (w *writer) restart() {
	if !w.delta.Changed("spec", "template") {
		return
	}
	switch w.change.ID.GroupKind().String() {
	case "Deployment.apps":
		if w.new.At("spec", "strategy", "type").Str() == "Recreate" {
			w.add(note.Warning, note.Restart, "the pod template changed: all its pods stop before new ones start")
			return
		}
	case "StatefulSet.apps", "DaemonSet.apps":
		if w.new.At("spec", "updateStrategy", "type").Str() == "OnDelete" {
			w.add(note.Info, note.Restart, "the pod template changed: a pod takes the change when somebody deletes it")
			return
		}
	default:
		return
	}
	w.add(note.Info, note.Restart, "the pod template changed: its pods are replaced, one after the other")
}

// replicas is about a number that the manifest no longer has: the API server fills in its default,
// unless another field manager, such as an autoscaler, has the field as well.
func (w *writer) replicas() {
	before, after := w.old.At("spec", "replicas"), w.new.At("spec", "replicas")
	if before == nil || after != nil {
		return
	}
	if was := fmt.Sprint(before.Scalar()); was != "1" {
		w.add(note.Warning, note.Replicas, "replicas is no longer in the manifest: %s becomes 1, the default, unless another field manager has the field", was)
	}
}

// privileges are what a pod may do to its node, for people.
func privileges(pod *tree.Node) []string {
	var all []string
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if pod.Field(name).IsTrue() {
			all = append(all, name)
		}
	}
	for _, volume := range pod.Field("volumes").Items() {
		if host := volume.At("hostPath", "path").Str(); host != "" {
			all = append(all, "the host's files at "+printable.Line(host))
		}
	}
	byKey, order := containers(pod)
	for _, key := range order {
		context := byKey[key].Field("securityContext")
		if context.Field("privileged").IsTrue() {
			all = append(all, fmt.Sprintf("privileged (%s)", printable.Line(key.String())))
		}
		if user := context.Field("runAsUser"); user != nil && user.Scalar() == int64(0) {
			all = append(all, fmt.Sprintf("root (%s)", printable.Line(key.String())))
		}
		for _, capability := range context.At("capabilities", "add").Items() {
			all = append(all, fmt.Sprintf("capability %s (%s)", printable.Line(capability.Str()), printable.Line(key.String())))
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
