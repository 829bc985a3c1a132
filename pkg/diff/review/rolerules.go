package review

import (
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/tree"
)

type rule struct {
	groups, resources, names, verbs, urls []string
	// admission is true for a rule of a webhook or of an admission policy.
	admission bool
}

func rulesOf(role *tree.Node) []rule {
	var rules []rule
	for _, item := range role.Field("rules").Items() {
		rules = append(rules, rule{
			groups:    item.Field("apiGroups").Strings(),
			resources: item.Field("resources").Strings(),
			names:     item.Field("resourceNames").Strings(),
			verbs:     item.Field("verbs").Strings(),
			urls:      item.Field("nonResourceURLs").Strings(),
		})
	}
	return rules
}

// right is the smallest part of a rule: one verb on one resource, or on one URL.
type right struct {
	group, resource, name, url, verb string
}

func (r right) target() string {
	if r.url != "" {
		return r.url
	}
	// The spelling of kubectl: deployments.apps/scale.
	target, subresource, nested := strings.Cut(r.resource, "/")
	if r.group != "" {
		target += "." + r.group
	}
	if nested {
		target += "/" + subresource
	}
	if r.name != "" {
		target += " " + r.name
	}
	return target
}

// rightsEffort is the largest number of rights of a role that are compared. A real role has some
// hundreds.
const rightsEffort = 20_000

func expand(rules []rule) ([]right, bool) {
	var all []right
	for _, r := range rules {
		names := r.names
		if len(names) == 0 {
			names = []string{""}
		}
		if atoms := len(r.verbs) * (len(r.urls) + len(r.groups)*len(r.resources)*len(names)); len(all)+atoms > rightsEffort {
			return nil, false
		}
		for _, verb := range r.verbs {
			for _, url := range r.urls {
				all = append(all, right{url: url, verb: verb})
			}
			for _, group := range r.groups {
				for _, resource := range r.resources {
					for _, name := range names {
						all = append(all, right{group: group, resource: resource, name: name, verb: verb})
					}
				}
			}
		}
	}
	return all, true
}

func (r rule) gives(want right) bool {
	if !matches(r.verbs, want.verb) {
		return false
	}
	if want.url != "" {
		return slices.ContainsFunc(r.urls, func(url string) bool {
			prefix, wild := strings.CutSuffix(url, "*")
			return url == want.url || wild && strings.HasPrefix(want.url, prefix)
		})
	}
	return matches(r.groups, want.group) && r.grantsResource(want.resource) &&
		(len(r.names) == 0 || want.name != "" && slices.Contains(r.names, want.name))
}

func (r rule) grantsResource(want string) bool {
	if r.admission {
		return slices.ContainsFunc(r.resources, func(pattern string) bool { return sees(pattern, want) })
	}
	if matches(r.resources, want) {
		return true
	}
	// */scale is the subresource scale of every resource.
	_, subresource, ok := strings.Cut(want, "/")
	return ok && slices.Contains(r.resources, "*/"+subresource)
}

// sees reports whether a resource in an admission rule matches another resource. In admission
// rules, * is every resource without its subresources.
func sees(pattern, want string) bool {
	resource, subresource, _ := strings.Cut(pattern, "/")
	of, sub, _ := strings.Cut(want, "/")
	return (resource == "*" || resource == of) && (subresource == "*" || subresource == sub)
}

func matches(patterns []string, want string) bool {
	return slices.Contains(patterns, "*") || slices.Contains(patterns, want)
}

// without returns the rights of rules that the others do not give; false if there are too many to
// compare.
func without(rules, others []rule, stop func() bool) ([]right, bool) {
	rights, ok := expand(rules)
	if !ok || len(rights)*len(others) > 100*rightsEffort {
		return nil, false
	}
	return slices.DeleteFunc(rights, func(r right) bool {
		return stop() || slices.ContainsFunc(others, func(other rule) bool { return other.gives(r) })
	}), true
}

// grouped returns rights as text, grouped by target: "get, list on secrets".
func grouped(rights []right) []string {
	var targets []string
	verbs := make(map[string][]string)
	for _, r := range rights {
		target := r.target()
		if verbs[target] == nil {
			targets = append(targets, target)
		}
		if !slices.Contains(verbs[target], r.verb) {
			verbs[target] = append(verbs[target], r.verb)
		}
	}
	var spelled []string
	// Resources with the same verbs are named together.
	together := make(map[string][]string)
	var order []string
	for _, target := range targets {
		key := strings.Join(verbs[target], "/")
		if slices.Contains(verbs[target], "*") {
			key = "*"
		}
		if together[key] == nil {
			order = append(order, key)
		}
		together[key] = append(together[key], target)
	}
	for _, key := range order {
		spelled = append(spelled, key+" on "+string(enumerate(together[key])))
	}
	return spelled
}
