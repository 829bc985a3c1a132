package review

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// Rights are the rights that a set of objects grants, by subject. A new role alone is no change,
// because operators rename their roles with every version. A subject that gains a right is a
// change.
type Rights struct {
	roles   map[roleKey][]rule
	grants  map[string][]grant   // by subject
	bound   map[boundRole]bool   // the subjects of each role
	holders map[roleKey][]holder // the holders of each role
	// aggregated are the rules of these objects that are aggregated into ClusterRoles, by the name
	// of the ClusterRole.
	aggregated map[string][]rule
	// aggregating are the roles that aggregate the rules of other roles, with their selectors.
	aggregating []aggregating
}

// aggregating is a role that aggregates the rules of all roles that a selector matches.
type aggregating struct {
	role     string
	selector labels.Selector
}

// grant is a set of rules in a namespace, or in the whole cluster.
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

// NewRights reads the roles and bindings among some objects. parse returns nil for an unreadable
// object, which then gives no rights.
func NewRights(objects []manifest.Object, parse func(*manifest.Object) *tree.Node) *Rights {
	r := &Rights{
		roles:   make(map[roleKey][]rule),
		grants:  make(map[string][]grant),
		bound:   make(map[boundRole]bool),
		holders: make(map[roleKey][]holder),

		aggregated: make(map[string][]rule),
	}
	var bindings []manifest.ID
	var nodes, clusterRoles []*tree.Node
	for i := range objects {
		id := scoped(objects[i].ID)
		if !GivesRights(id) {
			continue
		}
		n := parse(&objects[i])
		switch id.Kind {
		case "Role", "ClusterRole":
			rules := rulesOf(n)
			r.roles[roleKey{id.Kind, id.Namespace, id.Name}] = rules
			if id.Kind == "ClusterRole" {
				clusterRoles = append(clusterRoles, n)
				for _, selector := range selectors(n) {
					r.aggregating = append(r.aggregating, aggregating{id.Name, selector})
				}
			}
		case "RoleBinding", "ClusterRoleBinding":
			bindings, nodes = append(bindings, id), append(nodes, n)
		}
	}
	for _, role := range clusterRoles {
		for _, into := range r.aggregatedTo(role) {
			r.aggregated[into] = append(r.aggregated[into], rulesOf(role)...)
		}
	}
	for i, id := range bindings {
		role := roleKeyOf(id, nodes[i])
		for _, subject := range subjects(nodes[i]) {
			r.bound[boundRole{role, subject, id.Namespace}] = true
			r.holders[role] = append(r.holders[role], holder{subject, id.Namespace})
			r.grants[subject] = append(r.grants[subject], grant{id.Namespace, r.roles[role]})
		}
	}
	return r
}

// scoped returns the identity of a role or binding in the API server. Cluster-scoped objects have
// no namespace, even if their manifests have one.
func scoped(id manifest.ID) manifest.ID {
	if id.Group == rbacGroup && (id.Kind == "ClusterRole" || id.Kind == "ClusterRoleBinding") {
		id.Namespace = ""
	}
	return id
}

func roleKeyOf(id manifest.ID, binding *tree.Node) roleKey {
	role := roleKey{kind: binding.At("roleRef", "kind").Str(), name: binding.At("roleRef", "name").Str()}
	if role.kind == "Role" {
		role.namespace = id.Namespace
	}
	return role
}

// has reports whether a subject has a right in a namespace, or in the whole cluster.
func (r *Rights) has(subject, namespace string, want right) bool {
	return slices.ContainsFunc(r.grants[subject], func(g grant) bool {
		return (g.namespace == "" || g.namespace == namespace) &&
			slices.ContainsFunc(g.rules, func(one rule) bool { return one.gives(want) })
	})
}

// missingRights returns the rights of a role that some holder lacks in the other set of objects. It
// returns all rights if no holder is known.
func (r *Rights) missingRights(role roleKey, rights []right, other *Rights, stop func() bool) []right {
	if r == nil || len(r.holders[role]) == 0 {
		return rights
	}
	effort := 0
	for _, h := range r.holders[role] {
		effort += len(rights) * (1 + len(other.grants[h.subject]))
	}
	if effort > 100*rightsEffort {
		return rights
	}
	return slices.DeleteFunc(slices.Clone(rights), func(one right) bool {
		return stop() || !slices.ContainsFunc(r.holders[role], func(h holder) bool {
			return !other.has(h.subject, h.namespace, one)
		})
	})
}

// missingSubjects returns the subjects of a binding that gain rights by it, compared with the other
// set of objects.
func (r *Rights) missingSubjects(id manifest.ID, binding *tree.Node, subjects []string, other *Rights) []string {
	if r == nil {
		return subjects
	}
	id = scoped(id)
	role := roleKeyOf(id, binding)
	rights, ok := expand(r.roles[role])
	// An aggregating role has more rights than it lists.
	ok = ok && (role.kind != "ClusterRole" || !slices.ContainsFunc(r.aggregating, func(one aggregating) bool { return one.role == role.name }))
	return slices.DeleteFunc(slices.Clone(subjects), func(subject string) bool {
		if other.bound[boundRole{role, subject, id.Namespace}] {
			return true
		}
		if !ok || len(rights) == 0 || len(rights)*len(other.grants[subject]) > rightsEffort {
			return false
		}
		return !slices.ContainsFunc(rights, func(one right) bool { return !other.has(subject, id.Namespace, one) })
	})
}

// aggregates reports whether the objects already give all rights of some rules to a ClusterRole by
// aggregation.
func (r *Rights) aggregates(role string, rules []rule, stop func() bool) bool {
	if r == nil || len(r.aggregated[role]) == 0 {
		return false
	}
	more, ok := without(rules, r.aggregated[role], stop)
	return ok && len(more) == 0
}

// isNew reports whether a binding refers to a role of this set of objects that the other set does
// not have.
func (r *Rights) isNew(id manifest.ID, binding *tree.Node, other *Rights) bool {
	if r == nil || other == nil {
		return false
	}
	role := roleKeyOf(scoped(id), binding)
	_, is := r.roles[role]
	_, was := other.roles[role]
	return is && !was
}
