package release

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Inversion is an object that cannot become ready before an object of a later install level exists.
type Inversion struct {
	// Object has level 0, and Needs has level 1.
	Object, Needs manifest.ID
}

// String describes the inversion.
func (i Inversion) String() string {
	return fmt.Sprintf("%s, of install level 0, needs %s, which is of install level 1", i.Object, i.Needs)
}

// Inversions returns objects that need an object of a later level, sorted. They need not stop an
// installation, because another owner may create the needed object in time. Manifests with invalid
// annotations count as level 0.
func Inversions(objects []manifest.Object) []Inversion {
	late := map[manifest.ID]manifest.Object{}
	for _, object := range objects {
		if mark, _ := MarkOf(object); mark.Level > 0 {
			late[object.ID] = object
		}
	}
	if len(late) == 0 {
		return nil
	}
	kinds := definitions(late)
	var found []Inversion
	for _, object := range objects {
		if _, itself := late[object.ID]; itself {
			continue
		}
		needs := Needs(object)
		if definition, defined := kinds[object.GroupKind()]; defined {
			needs = append(needs, definition)
		}
		for _, id := range needs {
			if _, isLate := late[id]; isLate {
				found = append(found, Inversion{Object: object.ID, Needs: id})
			}
		}
	}
	slices.SortFunc(found, func(a, b Inversion) int {
		return cmp.Or(cmp.Compare(a.Object.String(), b.Object.String()), cmp.Compare(a.Needs.String(), b.Needs.String()))
	})
	return slices.Compact(found)
}

// Early is an object in an earlier phase than the definition of its kind.
type Early struct {
	Object, Definition manifest.ID
}

// String describes the consequence.
func (e Early) String() string {
	return fmt.Sprintf("%s comes in an earlier phase than its definition, %s: unless the kind is served already, the rollout waits at that phase for ever", e.Object, e.Definition)
}

// TooEarly returns objects whose kind a later phase of the same revision defines, in order. phase
// returns a number that grows in rollout order. Inversions handles objects of different install
// levels.
func TooEarly(objects []manifest.Object, phase func(i int) int) []Early {
	type defined struct {
		id           manifest.ID
		phase, level int
	}
	kinds := map[schema.GroupKind]defined{}
	for i, object := range objects {
		if !object.IsDefinition() {
			continue
		}
		if kind, err := object.DefinedKind(); err == nil {
			mark, _ := MarkOf(object)
			kinds[kind] = defined{object.ID, phase(i), mark.Level}
		}
	}
	var found []Early
	for i, object := range objects {
		definition, known := kinds[object.GroupKind()]
		if !known || phase(i) >= definition.phase {
			continue
		}
		if mark, _ := MarkOf(object); mark.Level == definition.level {
			found = append(found, Early{object.ID, definition.id})
		}
	}
	return found
}

func definitions(objects map[manifest.ID]manifest.Object) map[schema.GroupKind]manifest.ID {
	kinds := map[schema.GroupKind]manifest.ID{}
	for id, object := range objects {
		if !id.IsDefinition() {
			continue
		}
		if kind, err := object.DefinedKind(); err == nil {
			kinds[kind] = id
		}
	}
	return kinds
}

// Needs returns the objects that must exist before the pods of a workload can start: its required
// ConfigMaps, Secrets and claims, its ServiceAccount, and its classes. For every object, it
// includes the Namespace. It excludes defaults of omitted names, such as the ServiceAccount
// "default".
func Needs(object manifest.Object) []manifest.ID {
	n := needs{namespace: object.Namespace}
	if object.Namespace != "" {
		n.found = append(n.found, manifest.ID{Kind: "Namespace", Name: object.Namespace})
	}
	// Most manifests have no pods.
	if !bytes.Contains(object.JSON, []byte(`"containers"`)) {
		return n.found
	}
	var content map[string]any
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return n.found
	}
	if spec := podSpec(content); spec != nil {
		n.pod(spec)
	}
	return n.found
}

// podSpec returns the pod spec of a workload of any kind, at the paths that kinds of Kubernetes
// use.
func podSpec(content map[string]any) map[string]any {
	for _, path := range [][]string{
		{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}, {"template", "spec"}, {"spec"},
	} {
		at := content
		for _, name := range path {
			at = child(at, name)
		}
		if _, ok := at["containers"].([]any); ok {
			return at
		}
	}
	return nil
}

type needs struct {
	namespace string
	found     []manifest.ID
}

// add adds the object that a field names, unless the reference is optional.
func (n *needs) add(group, kind string, reference map[string]any, field string) {
	name, _ := reference[field].(string)
	if optional, _ := reference["optional"].(bool); name == "" || optional {
		return
	}
	id := manifest.ID{Group: group, Kind: kind, Name: name, Namespace: n.namespace}
	if kind == "PriorityClass" || kind == "RuntimeClass" {
		id.Namespace = ""
	}
	n.found = append(n.found, id)
}

func (n *needs) pod(spec map[string]any) {
	n.add("", "ServiceAccount", spec, "serviceAccountName")
	n.add("scheduling.k8s.io", "PriorityClass", spec, "priorityClassName")
	n.add("node.k8s.io", "RuntimeClass", spec, "runtimeClassName")
	for _, reference := range children(spec, "imagePullSecrets") {
		n.add("", "Secret", reference, "name")
	}
	for _, volume := range children(spec, "volumes") {
		n.volume(volume)
	}
	for _, field := range []string{"initContainers", "containers"} {
		for _, container := range children(spec, field) {
			n.container(container)
		}
	}
}

func (n *needs) volume(volume map[string]any) {
	n.add("", "ConfigMap", child(volume, "configMap"), "name")
	n.add("", "Secret", child(volume, "secret"), "secretName")
	n.add("", "PersistentVolumeClaim", child(volume, "persistentVolumeClaim"), "claimName")
	n.add("", "Secret", child(child(volume, "csi"), "nodePublishSecretRef"), "name")
	for _, source := range children(child(volume, "projected"), "sources") {
		n.add("", "ConfigMap", child(source, "configMap"), "name")
		n.add("", "Secret", child(source, "secret"), "name")
	}
}

func (n *needs) container(container map[string]any) {
	for _, source := range children(container, "envFrom") {
		n.add("", "ConfigMap", child(source, "configMapRef"), "name")
		n.add("", "Secret", child(source, "secretRef"), "name")
	}
	for _, variable := range children(container, "env") {
		from := child(variable, "valueFrom")
		n.add("", "ConfigMap", child(from, "configMapKeyRef"), "name")
		n.add("", "Secret", child(from, "secretKeyRef"), "name")
	}
}

func child(object map[string]any, field string) map[string]any {
	found, _ := object[field].(map[string]any)
	return found
}

func children(object map[string]any, field string) []map[string]any {
	list, _ := object[field].([]any)
	var found []map[string]any
	for _, item := range list {
		if item, ok := item.(map[string]any); ok {
			found = append(found, item)
		}
	}
	return found
}
