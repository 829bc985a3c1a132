package nodehealthremediation

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
)

// remediator is the chosen template, with a description of its effect on a node.
type remediator struct {
	apiVersion, kind, namespace, name string
	does, note                        string
}

// remediation chooses the template of an installed remediator. The profile does not create
// templates: a template of Fence Agents Remediation has addresses and credentials of machines, and
// Self Node Remediation creates its own template.
func remediation(facts profile.Facts, options v1alpha1.NodeHealthRemediationOptions) (remediator, error) {
	_, self := facts.Definitions[selfNodeTemplates]
	_, fence := facts.Definitions[fenceTemplates]
	asked := cmp.Or(options.Remediator, v1alpha1.RemediatorAutomatic)
	switch {
	case !self && !fence:
		return remediator{}, &profile.MissingError{Message: "nothing remediates nodes: install the Self Node Remediation Operator, or the Fence Agents Remediation Operator"}
	case asked == v1alpha1.RemediatorSelfNode && !self:
		return remediator{}, &profile.MissingError{Message: "remediator is SelfNode: install the Self Node Remediation Operator"}
	case asked == v1alpha1.RemediatorFenceAgents && !fence:
		return remediator{}, &profile.MissingError{Message: "remediator is FenceAgents: install the Fence Agents Remediation Operator"}
	}
	fences := facts.Objects[fenceTemplate()]
	if fence && asked != v1alpha1.RemediatorSelfNode && (asked == v1alpha1.RemediatorFenceAgents || !self || found(fences, options.Template)) {
		return fenceAgents(facts, fences, options.Template)
	}
	return selfNode(facts, options.Template)
}

func fenceAgents(facts profile.Facts, templates []*unstructured.Unstructured, asked *v1alpha1.TemplateReference) (remediator, error) {
	template, err := choose(templates, asked, "")
	if err != nil {
		return remediator{}, fmt.Errorf("FenceAgentsRemediationTemplate: %w", err)
	}
	if template == nil {
		return remediator{}, &profile.MissingError{Message: "there is no FenceAgentsRemediationTemplate" + named(asked) + ": create one, with the fence agent and the addresses of the machines"}
	}
	return remediator{
		apiVersion: fenceTemplate().Group + "/" + facts.Definitions[fenceTemplates].Preferred().Name, kind: fenceTemplate().Kind,
		namespace: template.GetNamespace(), name: template.GetName(), does: "a fence agent power-cycles",
		note: fmt.Sprintf("nodes are remediated by Fence Agents Remediation, with template %s/%s", template.GetNamespace(), template.GetName()),
	}, nil
}

func selfNode(facts profile.Facts, asked *v1alpha1.TemplateReference) (remediator, error) {
	template, err := choose(facts.Objects[selfNodeTemplate()], asked, defaultTemplate)
	if err != nil {
		return remediator{}, fmt.Errorf("SelfNodeRemediationTemplate: %w", err)
	}
	if template == nil {
		return remediator{}, &profile.MissingError{Message: "there is no SelfNodeRemediationTemplate" + named(asked) + ": the Self Node Remediation Operator makes " + defaultTemplate + " when it runs"}
	}
	return remediator{
		apiVersion: selfNodeTemplate().Group + "/" + facts.Definitions[selfNodeTemplates].Preferred().Name, kind: selfNodeTemplate().Kind,
		namespace: template.GetNamespace(), name: template.GetName(), does: "Self Node Remediation reboots",
		note: fmt.Sprintf("nodes are remediated by Self Node Remediation, with template %s/%s", template.GetNamespace(), template.GetName()),
	}, nil
}

// choose returns the requested template. Without a request it returns the only template of the
// usual name, or else the only template; nil if there is none. It returns an error if there are
// several, because it must not guess.
func choose(templates []*unstructured.Unstructured, asked *v1alpha1.TemplateReference, usual string) (*unstructured.Unstructured, error) {
	var meant, others []*unstructured.Unstructured
	for _, template := range templates {
		switch {
		case asked != nil && template.GetNamespace() == asked.Namespace && template.GetName() == asked.Name:
			return template, nil
		case asked != nil:
		case usual != "" && template.GetName() == usual:
			meant = append(meant, template)
		default:
			others = append(others, template)
		}
	}
	if len(meant) == 0 {
		meant = others
	}
	switch len(meant) {
	case 0:
		return nil, nil
	case 1:
		return meant[0], nil
	default:
		return nil, fmt.Errorf("there are %s: set template to the one to use", namesOf(meant))
	}
}

// found reports whether the requested template exists. Without a request, any template counts.
func found(templates []*unstructured.Unstructured, asked *v1alpha1.TemplateReference) bool {
	for _, template := range templates {
		if asked == nil || template.GetNamespace() == asked.Namespace && template.GetName() == asked.Name {
			return true
		}
	}
	return false
}

func named(asked *v1alpha1.TemplateReference) string {
	if asked == nil {
		return ""
	}
	return " " + asked.Namespace + "/" + asked.Name
}

// overlapping returns notes about other health checks that may select the same nodes, because two
// checks with different thresholds would remediate them. It compares only the roles of nodes; other
// labels may keep the checks apart.
func overlapping(facts profile.Facts, name string, roles []any) []string {
	nodes := []labels.Set{{"node-role.kubernetes.io/worker": ""}, {"node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": ""},
		{"node-role.kubernetes.io/worker": "", "node-role.kubernetes.io/control-plane": "", "node-role.kubernetes.io/master": ""}}
	ours := rolesOf(map[string]any{"matchExpressions": roles})
	var notes []string
	for _, check := range facts.Objects[healthCheck()] {
		if check.GetName() == name {
			continue
		}
		selector, _, _ := unstructured.NestedMap(check.Object, "spec", "selector")
		theirs := rolesOf(selector)
		for _, node := range nodes {
			if ours.Matches(node) && theirs.Matches(node) {
				notes = append(notes, fmt.Sprintf("NodeHealthCheck %s may select the same nodes, and remediates them by its own threshold: make sure that only one of the two does", check.GetName()))
				break
			}
		}
	}
	return notes
}

// rolesOf returns the part of a selector about roles of nodes. An unreadable selector selects
// everything.
func rolesOf(selector map[string]any) labels.Selector {
	var parsed metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &parsed); err != nil {
		return labels.Everything()
	}
	all, err := metav1.LabelSelectorAsSelector(&parsed)
	if err != nil {
		return labels.Everything()
	}
	requirements, _ := all.Requirements()
	kept := labels.NewSelector()
	for _, requirement := range requirements {
		if isRole(requirement.Key()) {
			kept = kept.Add(requirement)
		}
	}
	return kept
}

func isRole(key string) bool {
	switch key {
	case "node-role.kubernetes.io/worker", "node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master":
		return true
	default:
		return false
	}
}
