// Package nodehealthremediation is the profile NodeHealthRemediation: nodes that stay unhealthy are
// remediated, and their virtual machines start elsewhere.
// docs/reference/profiles/node-health-remediation.md explains each value.
package nodehealthremediation

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// Names that the operators define.
const (
	healthChecks        = "nodehealthchecks.remediation.medik8s.io"
	selfNodeTemplates   = "selfnoderemediationtemplates.self-node-remediation.medik8s.io"
	fenceTemplates      = "fenceagentsremediationtemplates.fence-agents-remediation.medik8s.io"
	machineHealthChecks = "machinehealthchecks.machine.openshift.io"
	machineConfigPools  = "machineconfigpools.machineconfiguration.openshift.io"

	// defaultTemplate is the template that Self Node Remediation creates.
	defaultTemplate = "self-node-remediation-automatic-strategy-template"
	// terminationCheck is the only MachineHealthCheck that Node Health Check tolerates. OpenShift
	// creates it for spot instances.
	terminationCheck = "machine-api-termination-handler"
)

// Names of the items and of their NodeHealthChecks.
const (
	ItemWorkers      = "remediate-workers"
	ItemControlPlane = "remediate-control-plane"
)

const defaultMinHealthy = "51%"

func healthCheck() schema.GroupKind {
	return schema.GroupKind{Group: "remediation.medik8s.io", Kind: "NodeHealthCheck"}
}

func selfNodeTemplate() schema.GroupKind {
	return schema.GroupKind{Group: "self-node-remediation.medik8s.io", Kind: "SelfNodeRemediationTemplate"}
}

func fenceTemplate() schema.GroupKind {
	return schema.GroupKind{Group: "fence-agents-remediation.medik8s.io", Kind: "FenceAgentsRemediationTemplate"}
}

func machineHealthCheck() schema.GroupKind {
	return schema.GroupKind{Group: "machine.openshift.io", Kind: "MachineHealthCheck"}
}

// Profile implements profile.Profile.
type Profile struct{}

var _ profile.Profile = Profile{}

// Name returns NodeHealthRemediation.
func (Profile) Name() v1alpha1.ProfileName { return v1alpha1.ProfileNodeHealthRemediation }

// Description describes the purpose of the profile.
func (Profile) Description() string {
	return "Nodes that stay unhealthy are rebooted or power-cycled, and their virtual machines start elsewhere."
}

// Requires returns the definitions that the profile reads. One of two remediators is required;
// Items checks that.
func (Profile) Requires() []profile.Requirement {
	const mco = "the Machine Config Operator, which is part of OpenShift"
	return []profile.Requirement{
		{Definition: healthChecks, Kind: healthCheck(), Install: "the Node Health Check Operator", Objects: true},
		{Definition: selfNodeTemplates, Kind: selfNodeTemplate(), Install: "the Self Node Remediation Operator", Optional: true, Objects: true},
		{Definition: fenceTemplates, Kind: fenceTemplate(), Install: "the Fence Agents Remediation Operator", Optional: true, Objects: true},
		{Definition: machineHealthChecks, Kind: machineHealthCheck(), Install: "the Machine API of OpenShift", Optional: true, Objects: true},
		{Definition: machineConfigPools, Kind: profile.MachineConfigPoolKind(), Install: mco, Optional: true, Objects: true},
	}
}

// Items returns separate NodeHealthChecks for workers and for control planes. A common health check
// would count them together, and could lose the control plane while enough workers are healthy.
func (Profile) Items(facts profile.Facts, all *v1alpha1.PlanOptions) ([]profile.Item, error) {
	var options v1alpha1.NodeHealthRemediationOptions
	if all != nil && all.NodeHealthRemediation != nil {
		options = *all.NodeHealthRemediation
	}
	if !facts.Definitions[healthChecks].Preferred().Has("spec", "minHealthy") {
		return nil, &profile.MissingError{Message: "the NodeHealthCheck has no field spec.minHealthy: update the Node Health Check Operator"}
	}
	if err := conflicts(facts); err != nil {
		return nil, err
	}
	chosen, err := remediation(facts, options)
	if err != nil {
		return nil, err
	}
	var items []profile.Item
	nodes, include := count(facts, options.NodeSelector), ptr.Deref(options.IncludeControlPlane, false)
	// A compact cluster has only control plane nodes.
	if compact := nodes.known && nodes.workers == 0 && len(options.NodeSelector) == 0; !compact || !include {
		item, err := workers(facts, options, nodes, chosen)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	if include {
		item, err := controlPlane(facts, options, nodes, chosen)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}

// conflicts returns an error that names MachineHealthChecks: Node Health Check disables itself
// while one exists.
func conflicts(facts profile.Facts) error {
	var names []string
	for _, check := range facts.Objects[machineHealthCheck()] {
		if check.GetName() != terminationCheck {
			names = append(names, check.GetNamespace()+"/"+check.GetName())
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("MachineHealthCheck %s remediates machines, and the Node Health Check Operator disables itself while one exists: delete one or the other", strings.Join(names, ", "))
}

// counted holds the numbers of selected nodes, summed over the MachineConfigPools. Each node is in
// exactly one pool. Nodes of pool master count as control plane, even if they are workers too.
type counted struct {
	known                 bool
	workers, controlPlane int64
	// Numbers of nodes that are not ready now.
	unreadyWorkers, unreadyControlPlane int64
	pools                               []string
	// unselected are pools for which the effect of nodeSelector is unknown.
	unselected []string
}

// count counts the nodes that nodeSelector selects, from the pools. All nodes of a pool have the
// labels of the pool's node selector. If these labels do not decide, all nodes of the pool count,
// which is the worst case.
func count(facts profile.Facts, selector map[string]string) counted {
	pools := facts.Objects[profile.MachineConfigPoolKind()]
	out := counted{known: len(pools) > 0}
	for _, pool := range pools {
		if !profile.Counted(pool) {
			out.known = false
			continue
		}
		nodes := profile.Count(pool, "machineCount")
		// A node during an update is not ready either. A health check can react to degraded and
		// unavailable nodes.
		unready := profile.Count(pool, "unavailableMachineCount")
		switch pool.GetName() {
		case "master":
			out.controlPlane += nodes
			out.unreadyControlPlane += unready
		case "arbiter": // runs no virtual machines and is not a worker
		default:
			all, none := selection(pool, selector)
			if none {
				continue
			}
			if !all {
				out.unselected = append(out.unselected, pool.GetName())
			}
			out.workers += nodes
			out.unreadyWorkers += unready
			out.pools = append(out.pools, pool.GetName())
		}
	}
	return out
}

// selection reports whether a selector selects all nodes of a pool, or none.
func selection(pool *unstructured.Unstructured, selector map[string]string) (all, none bool) {
	labels, _, _ := unstructured.NestedStringMap(pool.Object, "spec", "nodeSelector", "matchLabels")
	all = true
	for key, value := range selector {
		have, known := labels[key]
		all = all && known && have == value
		none = none || known && have != value
	}
	return all, none
}

// workers returns the item for nodes that are workers and not control planes.
func workers(facts profile.Facts, options v1alpha1.NodeHealthRemediationOptions, nodes counted, chosen remediator) (profile.Item, error) {
	threshold := ptr.Deref(options.MinHealthy, intstr.FromString(defaultMinHealthy))
	selector := []any{exists("node-role.kubernetes.io/worker"), absent("node-role.kubernetes.io/control-plane"), absent("node-role.kubernetes.io/master")}
	item := profile.Item{
		Name: ItemWorkers, Impact: v1alpha1.ImpactMedium,
		Reason: "from now on, " + chosen.does + " a worker node that stays unhealthy, and its virtual machines start elsewhere",
		Blast:  &v1alpha1.BlastRadius{Pools: nodes.pools, Nodes: nodes.workers},
		Notes:  append([]string{chosen.note}, overlapping(facts, ItemWorkers, selector)...),
	}
	switch {
	case !nodes.known:
		item.Blast = nil
		item.Notes = append(item.Notes, "the number of nodes is not known: whether minHealthy makes sense for them was not checked")
	case nodes.workers == 0 && len(options.NodeSelector) > 0:
		return item, fmt.Errorf("nodeSelector selects no worker node: every pool selects its nodes by another value of these labels")
	case nodes.workers == 0:
		return item, fmt.Errorf("there is no worker node that is not a control plane: set includeControlPlane to have control planes remediated, one at a time")
	default:
		if err := sensible(threshold, nodes.workers, len(nodes.unselected) > 0); err != nil {
			return item, err
		}
		if len(nodes.unselected) > 0 {
			item.Notes = append(item.Notes, fmt.Sprintf("minHealthy was checked against all %d worker nodes; how many of pool %s nodeSelector selects is not known: the impact counts all of them", nodes.workers, strings.Join(nodes.unselected, ", ")))
		}
		item.Impact, item.Reason = atOnce(item.Impact, item.Reason, nodes.unreadyWorkers)
	}
	item.Object = object(facts, ItemWorkers, selector, options, thresholdOf(threshold), chosen)
	return item, excluded(facts, ItemWorkers)
}

// excluded returns an error for fields of an existing NodeHealthCheck that conflict with fields of
// the plan. The operator disables a check that has both, so the owner must remove them.
func excluded(facts profile.Facts, name string) error {
	for _, check := range facts.Objects[healthCheck()] {
		if check.GetName() != name {
			continue
		}
		for _, pair := range [][2]string{{"maxUnhealthy", "minHealthy"}, {"escalatingRemediations", "remediationTemplate"}} {
			field, excludes := pair[0], pair[1]
			if _, set, _ := unstructured.NestedFieldNoCopy(check.Object, "spec", field); set {
				return &profile.MissingError{Message: fmt.Sprintf("NodeHealthCheck %s has spec.%s, which excludes spec.%s of the profile: remove spec.%s, or delete the NodeHealthCheck (kubectl get nodehealthcheck %s -o yaml --show-managed-fields shows who set it)", name, field, excludes, field, name)}
			}
		}
	}
	return nil
}

// controlPlane returns the item for control planes. All but one must be healthy, so at most one is
// remediated at a time, and etcd keeps its quorum.
func controlPlane(facts profile.Facts, options v1alpha1.NodeHealthRemediationOptions, nodes counted, chosen remediator) (profile.Item, error) {
	item := profile.Item{Name: ItemControlPlane, Impact: v1alpha1.ImpactMedium,
		Reason: "from now on, " + chosen.does + " a control plane that stays unhealthy, one at a time",
		Blast:  &v1alpha1.BlastRadius{Pools: []string{"master"}, Nodes: nodes.controlPlane}}
	switch {
	case !nodes.known:
		return item, fmt.Errorf("includeControlPlane: the number of control planes is not known, so several could be remediated at once: wait until the pools report it")
	case nodes.controlPlane < 3:
		return item, fmt.Errorf("includeControlPlane: there are %d control planes, and with fewer than three etcd has no quorum while one is remediated", nodes.controlPlane)
	}
	selector := []any{exists("node-role.kubernetes.io/control-plane")}
	options.NodeSelector = nil // only for workers
	item.Notes = append([]string{chosen.note, fmt.Sprintf("%d of %d control planes have to be healthy, so that at most one is remediated at a time", nodes.controlPlane-1, nodes.controlPlane)},
		overlapping(facts, ItemControlPlane, selector)...)
	item.Impact, item.Reason = atOnce(item.Impact, item.Reason, nodes.unreadyControlPlane)
	item.Object = object(facts, ItemControlPlane, selector, options, nodes.controlPlane-1, chosen)
	return item, excluded(facts, ItemControlPlane)
}

// sensible refuses a threshold with which no node would ever be remediated, or all at once.
// narrowed is true if a selector may select fewer nodes than were counted.
func sensible(threshold intstr.IntOrString, nodes int64, narrowed bool) error {
	needed, err := intstr.GetScaledValueFromIntOrPercent(&threshold, int(nodes), true)
	switch {
	case err != nil:
		return fmt.Errorf("minHealthy %s: %w", threshold.String(), err)
	case nodes == 1 && !narrowed:
		return fmt.Errorf("there is one worker node: nothing could take over what runs on it")
	case int64(needed) >= nodes:
		return fmt.Errorf("minHealthy %s of %d worker nodes is %d: no node would ever be remediated; it has to be below %d", threshold.String(), nodes, needed, nodes)
	case needed == 0:
		return fmt.Errorf("minHealthy %s lets all %d worker nodes be remediated at once, as when the network fails: it has to be at least 1", threshold.String(), nodes)
	}
	return nil
}

// atOnce raises the impact if nodes are not ready now: they are remediated once their condition has
// lasted.
func atOnce(impact v1alpha1.ImpactSeverity, reason string, unready int64) (v1alpha1.ImpactSeverity, string) {
	if unready == 0 {
		return impact, reason
	}
	return v1alpha1.ImpactHigh, fmt.Sprintf("%d nodes are not available now: they are remediated if that lasts; %s", unready, reason)
}

// object returns a NodeHealthCheck with every relevant field.
func object(facts profile.Facts, name string, roles []any, options v1alpha1.NodeHealthRemediationOptions, minHealthy any, chosen remediator) map[string]any {
	selector := map[string]any{"matchExpressions": roles}
	if len(options.NodeSelector) > 0 {
		labels := map[string]any{}
		for key, value := range options.NodeSelector {
			labels[key] = value
		}
		selector["matchLabels"] = labels
	}
	return map[string]any{
		"apiVersion": healthCheck().Group + "/" + facts.Definitions[healthChecks].Preferred().Name,
		"kind":       healthCheck().Kind,
		"metadata":   map[string]any{"name": name},
		"spec": map[string]any{
			"selector": selector, "minHealthy": minHealthy, "unhealthyConditions": unhealthy(options.UnhealthyConditions),
			"remediationTemplate": map[string]any{
				"apiVersion": chosen.apiVersion, "kind": chosen.kind, "namespace": chosen.namespace, "name": chosen.name,
			},
		},
	}
}

// unhealthy returns the conditions, or the defaults of Node Health Check. Defaults are set
// explicitly, so that the plan shows them.
func unhealthy(conditions []v1alpha1.UnhealthyCondition) []any {
	if len(conditions) == 0 {
		return []any{
			map[string]any{"type": "Ready", "status": "False", "duration": "300s"},
			map[string]any{"type": "Ready", "status": "Unknown", "duration": "300s"},
		}
	}
	var out []any
	for _, condition := range conditions {
		out = append(out, map[string]any{"type": condition.Type, "status": string(condition.Status), "duration": condition.Duration.Duration.String()})
	}
	return out
}

func thresholdOf(threshold intstr.IntOrString) any {
	if threshold.Type == intstr.Int {
		return int64(threshold.IntVal)
	}
	return threshold.StrVal
}

func exists(key string) any { return map[string]any{"key": key, "operator": "Exists"} }

func absent(key string) any { return map[string]any{"key": key, "operator": "DoesNotExist"} }

func namesOf(templates []*unstructured.Unstructured) string {
	var names []string
	for _, template := range templates {
		names = append(names, template.GetNamespace()+"/"+template.GetName())
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
