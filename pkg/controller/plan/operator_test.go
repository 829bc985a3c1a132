package plan

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const poolOfWorkers = "pools.operator.machineconfiguration.openshift.io/worker"

func kubeletConfigID(name string) manifest.ID {
	return manifest.ID{Group: profile.KubeletConfigKind().Group, Kind: profile.KubeletConfigKind().Kind, Name: name}
}

func hyperConvergedID() manifest.ID {
	return manifest.ID{Group: "hco.kubevirt.io", Kind: "HyperConverged", Namespace: "openshift-cnv", Name: "kubevirt-hyperconverged"}
}

// operator is a fake of the Machine Config Operator and the nodes. Each of its steps is a step of
// the real operator, which happens at an independent time. It reads KubeletConfigs, renders pools,
// updates one node, and reports. The report of a pool describes the nodes at the time of the
// report.
type operator struct {
	*cluster
	now          func() time.Time
	nodes        map[string][]*node
	unrenderable map[string]bool
}

// node has the files and units of a rendered configuration.
type node struct {
	config string
	ready  bool
	// stuck nodes do not return from a reboot.
	stuck bool
}

// newOperator creates pools with some nodes each. With dropIns, their kubelets read drop-in files.
func newOperator(l *lab, dropIns bool, sizes map[string]int) *operator {
	o := &operator{cluster: l.cluster, now: l.clock.Now, nodes: map[string][]*node{}, unrenderable: map[string]bool{}}
	start := "ExecStart=/usr/bin/kubelet"
	if dropIns {
		start += " --config-dir=" + profile.KubeletDropIns
	}
	o.alter(configID("00-worker"), "machine-config-operator", func(config map[string]any) {
		labelled(config, map[string]any{"machineconfiguration.openshift.io/role": "worker"})
		config["spec"] = map[string]any{"config": map[string]any{
			"storage": map[string]any{"files": []any{kubeletFile(true)}},
			"systemd": map[string]any{"units": []any{map[string]any{"name": "kubelet.service", "contents": start}}},
		}}
	})
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		o.alter(poolID(name), "machine-config-operator", func(pool map[string]any) {
			labelled(pool, map[string]any{poolOfWorkers: ""})
			pool["spec"] = map[string]any{"machineConfigSelector": map[string]any{"matchLabels": map[string]any{"machineconfiguration.openshift.io/role": "worker"}}}
		})
		o.render(name)
		o.nodes[name] = nil // a pool may have none
		for range sizes[name] {
			o.nodes[name] = append(o.nodes[name], &node{config: o.wants(name), ready: true})
		}
		o.report(name)
	}
	return o
}

func labelled(object map[string]any, labels map[string]any) {
	metadata, _ := object["metadata"].(map[string]any)
	metadata["labels"] = labels
}

// kubeletFile returns a kubelet configuration, with further lines.
func kubeletFile(failSwapOn bool, more ...string) map[string]any {
	content := fmt.Sprintf("failSwapOn: %v\n", failSwapOn) + strings.Join(more, "")
	return map[string]any{"path": profile.KubeletConfigFile, "mode": int64(420), "contents": map[string]any{"source": "data:," + url.PathEscape(content)}}
}

func (o *operator) all(kind string) []*unstructured.Unstructured {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []*unstructured.Unstructured
	for id, object := range o.objects {
		if id.Kind == kind {
			all = append(all, object.DeepCopy())
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all
}

// take creates a MachineConfig for each KubeletConfig, and reports that in its status. It deletes
// MachineConfigs whose KubeletConfig was deleted.
func (o *operator) take() {
	there := map[string]bool{}
	for _, config := range o.all("KubeletConfig") {
		there[config.GetName()] = true
		fails, found, _ := unstructured.NestedBool(config.Object, "spec", "kubeletConfig", "failSwapOn")
		var more []string
		if policy, set, _ := unstructured.NestedString(config.Object, "spec", "kubeletConfig", "topologyManagerPolicy"); set {
			more = append(more, "topologyManagerPolicy: "+policy+"\n")
		}
		o.alter(configID("99-worker-generated-kubelet"), "machine-config-operator", func(made map[string]any) {
			labelled(made, map[string]any{"machineconfiguration.openshift.io/role": "worker"})
			made["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
				"apiVersion": config.GetAPIVersion(), "kind": "KubeletConfig", "name": config.GetName(), "uid": string(config.GetUID())}}
			made["spec"] = map[string]any{"config": map[string]any{"storage": map[string]any{"files": []any{kubeletFile(fails || !found, more...)}}}}
		})
		o.alter(kubeletConfigID(config.GetName()), "machine-config-operator", func(object map[string]any) {
			object["status"] = map[string]any{"observedGeneration": config.GetGeneration(), "conditions": []any{map[string]any{"type": "Success", "status": "True"}}}
		})
	}
	for _, config := range o.all("MachineConfig") {
		if owners := config.GetOwnerReferences(); len(owners) > 0 && !there[owners[0].Name] {
			o.erase(configID(config.GetName()))
		}
	}
}

// render sets the target configuration of a pool from its present MachineConfigs. The name depends
// on the content.
func (o *operator) render(name string) {
	if o.unrenderable[name] {
		return
	}
	files, units, sources := map[string]any{}, map[string]any{}, []any{}
	for _, config := range o.all("MachineConfig") {
		if config.GetLabels()["machineconfiguration.openshift.io/role"] != "worker" {
			continue
		}
		sources = append(sources, map[string]any{"name": config.GetName()})
		for of, path := range map[string][]string{"path": {"storage", "files"}, "name": {"systemd", "units"}} {
			list, _, _ := unstructured.NestedSlice(config.Object, append([]string{"spec", "config"}, path...)...)
			for _, item := range list {
				one := item.(map[string]any)
				map[string]map[string]any{"path": files, "name": units}[of][one[of].(string)] = one
			}
		}
	}
	content := map[string]any{"config": map[string]any{"storage": map[string]any{"files": sorted(files)}, "systemd": map[string]any{"units": sorted(units)}}}
	rendered := fmt.Sprintf("rendered-%s-%x", name, sha256.Sum256(fmt.Append(nil, content)))[:len("rendered-")+len(name)+9]
	if o.value(configID(rendered), "spec") == nil {
		o.alter(configID(rendered), "machine-config-operator", func(config map[string]any) { config["spec"] = content })
	}
	if o.value(poolID(name), "spec", "configuration", "name") == rendered {
		return
	}
	o.set(poolID(name), "machine-config-operator", map[string]any{"name": rendered, "source": sources}, "spec", "configuration")
}

func sorted(items map[string]any) []any {
	var out []any
	for _, key := range slices.Sorted(maps.Keys(items)) {
		out = append(out, items[key])
	}
	return out
}

func (o *operator) wants(name string) string {
	want, _ := o.value(poolID(name), "spec", "configuration", "name").(string)
	return want
}

// advance does the next step of one node: it is drained and reboots, and then has the pool's target
// configuration of that time.
func (o *operator) advance(name string) {
	if paused, _ := o.value(poolID(name), "spec", "paused").(bool); paused {
		return
	}
	for _, node := range o.nodes[name] {
		switch {
		case !node.ready && !node.stuck:
			node.config, node.ready = o.wants(name), true
			return
		case !node.ready:
			return // one node at a time
		}
	}
	for _, node := range o.nodes[name] {
		if node.config != o.wants(name) {
			node.ready = false
			return
		}
	}
}

// report writes the present state of the nodes into a pool's status, as the operator does.
func (o *operator) report(name string) {
	all, updated, ready, stuck := int64(len(o.nodes[name])), int64(0), int64(0), false
	for _, node := range o.nodes[name] {
		if node.config == o.wants(name) {
			updated++
		}
		if node.ready {
			ready++
		}
		stuck = stuck || node.stuck && !node.ready
	}
	through := updated == all && ready == all
	truth := map[bool]string{true: "True", false: "False"}
	since := o.now().UTC().Format(time.RFC3339)
	if before, _ := o.value(poolID(name), "status", "conditions").([]any); stuck && len(before) > 1 {
		if was := before[1].(map[string]any); was["status"] == "True" {
			since = was["lastTransitionTime"].(string)
		}
	}
	configuration, _ := o.value(poolID(name), "status", "configuration").(map[string]any)
	if through {
		configuration, _ = o.value(poolID(name), "spec", "configuration").(map[string]any)
	}
	o.alter(poolID(name), "machine-config-operator", func(pool map[string]any) {
		status := map[string]any{
			"machineCount": all, "updatedMachineCount": updated, "readyMachineCount": min(updated, ready), "unavailableMachineCount": all - ready,
			"observedGeneration": pool["metadata"].(map[string]any)["generation"],
			"conditions": []any{
				map[string]any{"type": "Updated", "status": truth[through]},
				map[string]any{"type": "NodeDegraded", "status": truth[stuck], "message": "node does not come back", "lastTransitionTime": since},
				map[string]any{"type": "RenderDegraded", "status": truth[o.unrenderable[name]], "message": "cannot be rendered", "lastTransitionTime": since},
			},
		}
		if configuration != nil {
			status["configuration"] = configuration
		}
		pool["status"] = status
	})
}

func (o *operator) through() {
	o.take()
	for name := range o.nodes {
		o.render(name)
		for range 2*len(o.nodes[name]) + 1 {
			o.advance(name)
		}
		o.report(name)
	}
}

// lacks names a node without the files and units of a MachineConfig. The caller does not hold mu.
func (o *operator) lacks(wanted profile.NodeConfig) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lacking(wanted)
}

// lacking is lacks for callers that hold mu.
func (o *operator) lacking(wanted profile.NodeConfig) string {
	for name, nodes := range o.nodes {
		for i, node := range nodes {
			if !profile.NodeConfigOf(o.objects[configID(node.config)]).Has(wanted) {
				return fmt.Sprintf("node %d of pool %s, which has %s", i, name, node.config)
			}
		}
	}
	return ""
}
