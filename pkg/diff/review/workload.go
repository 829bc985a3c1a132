package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// workload adds notes about pods: their images, their rights, and their replacement.
func (w *writer) workload(template []string) {
	before, after := w.old.At(template...).At("spec"), w.new.At(template...).At("spec")
	switch {
	case w.stays():
		w.images(before, after)
		w.account(before, after)
		w.restart()
		w.replicas()
	case after != nil && w.Old != nil:
		w.newImages(after)
		w.newAccount(after)
	}
	if after == nil {
		return
	}
	if gained := gained(privileges(before), privileges(after)); len(gained) > 0 {
		w.add(note.Warning, note.Privilege, "its pods gain: %s", enumerate(gained))
	}
	if lost := lostGuards(before, after); len(lost) > 0 {
		w.add(note.Warning, note.Privilege, "its pods lose: %s", enumerate(lost))
	}
}

// TemplatePath returns the path of a workload's pod template; nil for an object without one.
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
		addRepositories(known, one)
	}
	for _, key := range newOrder {
		image := new[key].Field("image").Str()
		if old[key] == nil {
			w.newImage("new "+key.String()+", image", image, known)
			w.relatedImages(nil, new[key], known)
			continue
		}
		w.image("image of "+key.String(), old[key].Field("image").Str(), image)
		w.relatedImages(old[key], new[key], known)
	}
	for _, key := range oldOrder {
		if new[key] == nil {
			w.add(note.Info, note.Image, "%s is removed, image %s", key.String(), old[key].Field("image").Str())
		}
	}
}

// newImages adds notes about images of a new workload from a repository that no earlier workload
// used.
func (w *writer) newImages(pod *tree.Node) {
	all, order := containers(pod)
	for _, key := range order {
		if image := all[key].Field("image").Str(); !w.Old.repositories[repository(image)] {
			w.newImage("new "+key.String()+", image", image, nil)
		}
		w.relatedImages(nil, all[key], w.Old.repositories)
	}
}

// newImage adds a note about an image that replaces no other image. known are the repositories of
// earlier images.
func (w *writer) newImage(what, image string, known map[string]bool) {
	severity, remark := note.Info, phrase("")
	if !known[repository(image)] {
		severity, remark = note.Warning, anotherRepository
	}
	w.add(severity, note.Image, "%s %s%s", what, image, remark)
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

func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

// account adds a note if pods get the rights of another ServiceAccount.
func (w *writer) account(before, after *tree.Node) {
	if was, is := accountOf(before), accountOf(after); was != is {
		w.add(note.Warning, note.Privilege, "its pods run as ServiceAccount %s, and ran as %s", is, was)
	}
}

// newAccount adds a note if a new workload uses a ServiceAccount that no pod used before. Notes on
// rights cover new ServiceAccounts.
func (w *writer) newAccount(pod *tree.Node) {
	if name := accountOf(pod); name != "default" && !w.Old.accounts[account{w.change.ID.Namespace, name}] {
		w.add(note.Warning, note.Privilege, "its pods run as ServiceAccount %s, as no pod did", name)
	}
}

func accountOf(pod *tree.Node) string {
	return cmp.Or(pod.Field("serviceAccountName").Str(), pod.Field("serviceAccount").Str(), "default")
}

// Workloads has the repositories and accounts of the workloads of a set of objects.
type Workloads struct {
	repositories map[string]bool
	// accounts are the ServiceAccounts of pods, and the new ServiceAccounts.
	accounts map[account]bool
}

type account struct{ namespace, name string }

// NewWorkloads reads the workloads of the old objects. parse returns nil for an unreadable object.
func NewWorkloads(old, new []manifest.Object, parse func(*manifest.Object) *tree.Node) *Workloads {
	w := &Workloads{repositories: make(map[string]bool), accounts: make(map[account]bool)}
	for i := range new {
		if id := new[i].ID; id.GroupKind().String() == "ServiceAccount" {
			w.accounts[account{id.Namespace, id.Name}] = true
		}
	}
	for i := range old {
		if id := old[i].ID; id.GroupKind().String() == "ServiceAccount" {
			delete(w.accounts, account{id.Namespace, id.Name})
		}
	}
	for i := range old {
		template := TemplatePath(old[i].ID)
		if template == nil {
			continue
		}
		pod := parse(&old[i]).At(template...).At("spec")
		w.accounts[account{old[i].Namespace, accountOf(pod)}] = true
		all, _ := containers(pod)
		for _, one := range all {
			addRepositories(w.repositories, one)
		}
	}
	return w
}

func addRepositories(to map[string]bool, container *tree.Node) {
	to[repository(container.Field("image").Str())] = true
	for _, variable := range container.Field("env").Items() {
		if value := variable.Field("value").Str(); value != "" && strings.HasPrefix(variable.Field("name").Str(), relatedImage) {
			to[repository(value)] = true
		}
	}
}

// repository returns an image reference without tag and digest, with the default registry if none
// is named.
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

const relatedImage = "RELATED_IMAGE_"

// relatedImages compares the images that an operator itself starts. By convention, they are in its
// environment variables.
func (w *writer) relatedImages(before, after *tree.Node, known map[string]bool) {
	old := make(map[string]string)
	for _, variable := range before.Field("env").Items() {
		old[variable.Field("name").Str()] = variable.Field("value").Str()
	}
	for _, variable := range after.Field("env").Items() {
		name, value := variable.Field("name").Str(), variable.Field("value").Str()
		was, had := old[name]
		switch {
		case !strings.HasPrefix(name, relatedImage) || value == "":
		case had:
			w.image(name, was, value)
		case !known[repository(value)] || w.stays():
			w.newImage("new "+name+",", value, known)
		}
	}
}

// restart adds a note about the replacement of pods after a changed template.
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
			w.add(note.Info, note.Restart, "the pod template changed: each Pod takes the change when it is deleted")
			return
		}
	default:
		return
	}
	w.add(note.Info, note.Restart, "the pod template changed: its pods are replaced, one after the other")
}

// replicas adds a note about a number of replicas that the manifest no longer has. The API server
// then sets its default, unless another field manager, such as an autoscaler, also has the field.
func (w *writer) replicas() {
	before, after := w.old.At("spec", "replicas"), w.new.At("spec", "replicas")
	if before == nil || after != nil {
		return
	}
	if was := fmt.Sprint(before.Scalar()); was != "1" {
		w.add(note.Warning, note.Replicas, "replicas is no longer in the manifest: %s becomes 1, the default, unless another field manager has the field", was)
	}
}

func gained(old, new []string) []string {
	had := make(map[string]bool, len(old))
	for _, thing := range old {
		had[thing] = true
	}
	return slices.DeleteFunc(slices.Clone(new), func(thing string) bool { return had[thing] })
}
