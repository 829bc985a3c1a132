package diff

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// powers are the rights that a set of objects gives, by who has them. Operators
// rename their roles with every version: what matters is not that a role is new,
// but whether somebody can do what he could not.
type powers struct {
	roles  map[roleKey][]rule
	grants map[string][]grant   // by subject
	bound  map[boundRole]bool   // who is bound to what
	held   map[roleKey][]holder // who is bound to a role
}

// grant is a set of rules in a namespace, or everywhere.
type grant struct {
	namespace string
	rules     []rule
}

type holder struct{ subject, namespace string }

type roleKey struct{ kind, namespace, name string }

type boundRole struct {
	roleKey
	subject, where string
}

// powersOf reads the roles and bindings among some objects. build returns nil
// for what cannot be read.
func powersOf(objects []manifest.Object, build func(*manifest.Object) *node) *powers {
	p := &powers{
		roles:  make(map[roleKey][]rule),
		grants: make(map[string][]grant),
		bound:  make(map[boundRole]bool),
		held:   make(map[roleKey][]holder),
	}
	var bindings []manifest.ID
	var nodes []*node
	for i := range objects {
		id := scoped(objects[i].ID)
		if id.Group != rbacGroup {
			continue
		}
		n := build(&objects[i])
		switch id.Kind {
		case "Role", "ClusterRole":
			p.roles[roleKey{id.Kind, id.Namespace, id.Name}] = rulesOf(n)
		case "RoleBinding", "ClusterRoleBinding":
			bindings, nodes = append(bindings, id), append(nodes, n)
		}
	}
	for i, id := range bindings {
		role := roleKeyOf(id, nodes[i])
		for _, subject := range subjects(nodes[i]) {
			p.bound[boundRole{role, subject, id.Namespace}] = true
			p.held[role] = append(p.held[role], holder{subject, id.Namespace})
			p.grants[subject] = append(p.grants[subject], grant{id.Namespace, p.roles[role]})
		}
	}
	return p
}

// scoped is the identity of a role or binding as the API server knows it: those of
// the whole cluster have no namespace, whatever their manifests say.
func scoped(id manifest.ID) manifest.ID {
	if id.Group == rbacGroup && (id.Kind == "ClusterRole" || id.Kind == "ClusterRoleBinding") {
		id.Namespace = ""
	}
	return id
}

// roleKeyOf returns the role that a binding refers to.
func roleKeyOf(id manifest.ID, binding *node) roleKey {
	role := roleKey{kind: binding.at("roleRef", "kind").str(), name: binding.at("roleRef", "name").str()}
	if role.kind == "Role" {
		role.namespace = id.Namespace
	}
	return role
}

// has tells whether a subject has a right in a namespace, or everywhere.
func (p *powers) has(subject, namespace string, want right) bool {
	return slices.ContainsFunc(p.grants[subject], func(g grant) bool {
		return (g.namespace == "" || g.namespace == namespace) &&
			slices.ContainsFunc(g.rules, func(r rule) bool { return r.gives(want) })
	})
}

// news are the rights that some holder of a role does not have in another set of
// objects; all of them when nobody is known to hold it.
func (p *powers) news(role roleKey, rights []right, other *powers, stop func() bool) []right {
	if p == nil || len(p.held[role]) == 0 {
		return rights
	}
	effort := 0
	for _, h := range p.held[role] {
		effort += len(rights) * (1 + len(other.grants[h.subject]))
	}
	if effort > 100*rightsEffort {
		return rights
	}
	return slices.DeleteFunc(slices.Clone(rights), func(r right) bool {
		return stop() || !slices.ContainsFunc(p.held[role], func(h holder) bool {
			return !other.has(h.subject, h.namespace, r)
		})
	})
}

// newcomers are the subjects of a binding to whom it gives more than they have
// in another set of objects.
func (p *powers) newcomers(id manifest.ID, binding *node, subjects []string, other *powers) []string {
	if p == nil {
		return subjects
	}
	id = scoped(id)
	role := roleKeyOf(id, binding)
	rights, ok := rightsOf(p.roles[role])
	return slices.DeleteFunc(slices.Clone(subjects), func(subject string) bool {
		if other.bound[boundRole{role, subject, id.Namespace}] {
			return true
		}
		if !ok || len(rights) == 0 || len(rights)*len(other.grants[subject]) > rightsEffort {
			return false
		}
		return !slices.ContainsFunc(rights, func(r right) bool { return !other.has(subject, id.Namespace, r) })
	})
}
