package console

import (
	"fmt"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plugin"
)

// served is an open console.
type served = plugin.Console

// serve opens a console until the test ends.
func serve(t *testing.T, kubeconfig, line string) *served {
	t.Helper()
	return plugin.OpenConsole(t, kubeconfig, line)
}

// asTyped is the command that opens a console.
const asTyped = `kubectl penstock console`

// object is a Kubernetes object.
type object = map[string]any

func configMap(namespace, name string, data ...string) object {
	pairs := object{}
	for i := 0; i+1 < len(data); i += 2 {
		pairs[data[i]] = data[i+1]
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"namespace": namespace, "name": name}, "data": pairs}
}

func deployment(namespace, name, image, zone string) object {
	pod := object{"containers": []any{object{"name": "main", "image": image}}}
	if zone != "" {
		pod["nodeSelector"] = object{"zone": zone}
	}
	labels := object{"app": name}
	return object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"namespace": namespace, "name": name}, "spec": object{
		"replicas": 1, "selector": object{"matchLabels": labels}, "template": object{"metadata": object{"labels": labels}, "spec": pod}}}
}

// phase is a phase of a revision.
type phase struct {
	name    string
	objects []object
}

// revision describes a revision to create.
type revision struct {
	extension, version, cause, state string
	number                           int
	annotations                      map[string]string
	phases                           []phase
}

func (r revision) object() object {
	annotations := object{}
	for key, value := range r.annotations {
		annotations[key] = value
	}
	if r.version != "" {
		annotations["olm.operatorframework.io/bundle-version"] = r.version
	}
	if r.cause != "" {
		annotations["kubernetes.io/change-cause"] = r.cause
	}
	var phases []any
	for _, one := range r.phases {
		var objects []any
		for _, content := range one.objects {
			objects = append(objects, object{"object": content})
		}
		phases = append(phases, object{"name": one.name, "objects": objects})
	}
	spec := object{"revision": r.number, "phases": phases}
	if r.state != "" {
		spec["lifecycleState"] = r.state
	}
	return object{"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": object{"name": fmt.Sprintf("%s-%d", r.extension, r.number), "annotations": annotations}, "spec": spec}
}
