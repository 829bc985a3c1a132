package diff

import (
	"slices"
	"strings"
)

const rbacGroup = "rbac.authorization.k8s.io"

// rule is one of a role.
type rule struct {
	groups, resources, names, verbs, urls []string
}

func rulesOf(role *node) []rule {
	var rules []rule
	for _, item := range role.field("rules").list() {
		rules = append(rules, rule{
			groups:    texts(item.field("apiGroups")),
			resources: texts(item.field("resources")),
			names:     texts(item.field("resourceNames")),
			verbs:     texts(item.field("verbs")),
			urls:      texts(item.field("nonResourceURLs")),
		})
	}
	return rules
}

func texts(list *node) []string {
	var all []string
	for _, item := range list.list() {
		all = append(all, item.str())
	}
	return all
}

// right is one atom of a rule: one verb on one resource, or on one URL.
type right struct {
	group, resource, name, url, verb string
}

// target says what the right is on.
func (r right) target() string {
	if r.url != "" {
		return r.url
	}
	// As kubectl spells them: deployments.apps/scale.
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

// rightsEffort bounds the atoms that are looked at. A real role has some
// hundreds.
const rightsEffort = 20_000

// rightsOf splits rules into atoms; false when there are too many.
func rightsOf(rules []rule) ([]right, bool) {
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

// gives tells whether a rule contains a right, as the RBAC authorizer reads it.
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
	return matches(r.groups, want.group) && r.givesResource(want.resource) &&
		(len(r.names) == 0 || want.name != "" && slices.Contains(r.names, want.name))
}

func (r rule) givesResource(want string) bool {
	if matches(r.resources, want) {
		return true
	}
	// */scale is the subresource of every resource.
	_, subresource, ok := strings.Cut(want, "/")
	return ok && slices.Contains(r.resources, "*/"+subresource)
}

func matches(patterns []string, want string) bool {
	return slices.Contains(patterns, "*") || slices.Contains(patterns, want)
}

// without returns the rights of rules that others do not contain; false when
// there are too many to tell.
func without(rules, others []rule, stop func() bool) ([]right, bool) {
	rights, ok := rightsOf(rules)
	if !ok || len(rights)*len(others) > 100*rightsEffort {
		return nil, false
	}
	return slices.DeleteFunc(rights, func(r right) bool {
		return stop() || slices.ContainsFunc(others, func(other rule) bool { return other.gives(r) })
	}), true
}

// role says which rights a role gains and loses.
func (w *words) role() {
	before, after := rulesOf(w.old), rulesOf(w.new)
	more, ok := without(after, before, w.stop)
	less, okLess := without(before, after, w.stop)
	if !ok || !okLess {
		if w.delta.op != deltaInside || w.delta.changed("rules") {
			w.add(Critical, ReasonRightsGained, "it has too many rules to compare right by right")
		}
		return
	}
	id := scoped(w.change.ID)
	role := roleKey{id.Kind, id.Namespace, id.Name}
	more = w.after.news(role, more, w.before, w.stop)
	less = w.before.news(role, less, w.after, w.stop)
	w.rightsGained(more)
	if len(less) > 0 {
		w.add(Info, ReasonRightsLost, "loses %s", some(grouped(less)))
	}
	if w.delta.op == deltaInside && w.delta.changed("aggregationRule") {
		w.add(Warning, ReasonRightsGained, "aggregationRule changes: its rights are those of other roles")
	}
}

// rightsGained names what deserves a look by itself, and the rest together.
func (w *words) rightsGained(more []right) {
	table := dangers()
	var plain []right
	byDanger := make(map[danger][]right)
	var order []danger
	for _, r := range more {
		d := dangerOf(r, table)
		if d.why == "" {
			plain = append(plain, r)
			continue
		}
		if byDanger[d] == nil {
			order = append(order, d)
		}
		byDanger[d] = append(byDanger[d], r)
	}
	for _, d := range order {
		w.add(d.severity, ReasonRightsGained, "gains %s: %s", some(grouped(byDanger[d])), phrase(d.why))
	}
	if len(plain) > 0 {
		w.add(Info, ReasonRightsGained, "gains %s", some(grouped(plain)))
	}
}

// grouped spells rights by what they are on: "get, list on secrets".
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
	// What has the same verbs is named together.
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
		spelled = append(spelled, key+" on "+string(some(together[key])))
	}
	return spelled
}

// binding says who gains and loses a role.
func (w *words) binding() {
	before, after := subjects(w.old), subjects(w.new)
	role := roleOf(w.new)
	more := w.after.newcomers(w.change.ID, w.new, gained(before, after), w.before)
	if len(more) > 0 {
		severity, remark := Info, phrase("")
		switch {
		case slices.ContainsFunc(more, isEverybody):
			severity, remark = Critical, ": that is everybody"
		case role == "ClusterRole cluster-admin":
			severity, remark = Critical, ": that is every right"
		}
		w.add(severity, ReasonSubjectsGained, "gives %s to %s%s", role, some(more), remark)
	}
	less := w.before.newcomers(w.change.ID, w.old, gained(after, before), w.after)
	if len(less) > 0 {
		w.add(Info, ReasonSubjectsLost, "takes %s from %s", roleOf(w.old), some(less))
	}
}

func roleOf(binding *node) string {
	ref := binding.field("roleRef")
	return ref.field("kind").str() + " " + ref.field("name").str()
}

func subjects(binding *node) []string {
	var all []string
	for _, subject := range binding.field("subjects").list() {
		name := subject.field("name").str()
		if namespace := subject.field("namespace").str(); namespace != "" {
			name = namespace + "/" + name
		}
		all = append(all, subject.field("kind").str()+" "+name)
	}
	return all
}

func isEverybody(subject string) bool {
	switch subject {
	case "Group system:authenticated", "Group system:unauthenticated", "Group system:serviceaccounts", "User system:anonymous":
		return true
	}
	return false
}
