package privilege

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const (
	// MaxAtoms bounds the different rights that the roles and bindings of one revision grant, if
	// the requester must prove to have them.
	MaxAtoms = 2000
	// maxExpansion bounds the work of counting these rights.
	maxExpansion = 50 * MaxAtoms
)

// grant is an object that grants rights: a role or a binding.
type grant struct {
	manifest.ID
	// unless is the right that replaces all of them: escalate for roles, bind for bindings.
	unless authz.Right
	rules  []rbacv1.PolicyRule
	// role that a binding refers to.
	role *manifest.ID
	// shownTo is the right to read the object; empty if the requester sent it.
	shownTo authz.Right
}

// String names the object in messages.
func (g grant) String() string {
	name := strings.TrimPrefix(g.Namespace+"/"+g.Name, "/")
	if g.role != nil {
		return fmt.Sprintf("granted by %s %s, through %s %s", g.Kind, name, g.role.Kind, g.role.Name)
	}
	return fmt.Sprintf("granted by %s %s", g.Kind, name)
}

// grantOf returns the grant of an object, or nil if it grants nothing. The grant has the scope that
// the API server enforces: a ClusterRole and a ClusterRoleBinding have no namespace, even if their
// manifests have one.
func grantOf(object manifest.Object) (*grant, error) {
	if object.Group != rbacv1.GroupName {
		return nil, nil
	}
	switch object.Kind {
	case "Role":
		return roleGrant(object)
	case "ClusterRole":
		object.Namespace = metav1.NamespaceNone
		return roleGrant(object)
	case "RoleBinding":
		return bindingGrant(object)
	case "ClusterRoleBinding":
		object.Namespace = metav1.NamespaceNone
		return bindingGrant(object)
	default:
		return nil, nil
	}
}

func roleGrant(object manifest.Object) (*grant, error) {
	var role rbacv1.ClusterRole
	if err := decode(object, &role); err != nil {
		return nil, err
	}
	rules := role.Rules
	if aggregation := role.AggregationRule; aggregation != nil && len(aggregation.ClusterRoleSelectors) > 0 {
		// An aggregated role can get any rule.
		rules = append(rules,
			rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
			rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}})
	}
	return &grant{ID: object.ID, rules: rules, unless: authz.Right{
		Verb: "escalate", Group: rbacv1.GroupName, Resource: strings.ToLower(object.Kind) + "s", Namespace: object.Namespace, Name: object.Name,
	}}, nil
}

func bindingGrant(object manifest.Object) (*grant, error) {
	var binding rbacv1.RoleBinding
	if err := decode(object, &binding); err != nil {
		return nil, err
	}
	role := manifest.ID{Group: rbacv1.GroupName, Kind: binding.RoleRef.Kind, Name: binding.RoleRef.Name}
	if role.Kind == "Role" {
		role.Namespace = object.Namespace
	}
	// The right to bind is needed in the namespace of the binding, or in all namespaces.
	return &grant{ID: object.ID, role: &role, unless: authz.Right{
		Verb: "bind", Group: rbacv1.GroupName, Resource: strings.ToLower(role.Kind) + "s", Namespace: object.Namespace, Name: role.Name,
	}}, nil
}

// grants are all grants of a change.
type grants struct {
	list []*grant
	// roles that are written, by identity. A role can be written several times, with different
	// content.
	roles map[manifest.ID][]*grant
}

func (g *grants) add(object manifest.Object, shownTo authz.Right) error {
	found, err := grantOf(object)
	if err != nil || found == nil {
		return err
	}
	found.shownTo = shownTo
	g.list = append(g.list, found)
	if found.role == nil {
		if g.roles == nil {
			g.roles = map[manifest.ID][]*grant{}
		}
		g.roles[found.ID] = append(g.roles[found.ID], found)
	}
	return nil
}

// atoms returns the rights that a user must have to grant the rights of a grant, each once, without
// rights that set already has. An atom is one verb on one resource, by one name or for all names,
// or on one path. "*" in a rule becomes "*" in the check, so only a user with "*" can grant it.
//
// A binding of a role that does not exist needs the right to bind it, because its rules are
// unknown. Too many atoms are a *tooManyError.
func (g *grants) atoms(ctx context.Context, set *atomSet, grant *grant, roles Roles) ([]ask, error) {
	before := len(set.atoms)
	for _, rule := range grant.rules {
		if err := set.add(grant, rule, grant.shownTo); err != nil {
			return nil, err
		}
	}
	add := g.addRole
	if grant.role == nil {
		add = g.addKept
	}
	if err := add(ctx, set, grant, roles); err != nil {
		return nil, err
	}
	return set.atoms[before:], nil
}

// addRole adds the rules that a binding grants: the rules of the role in the revision and in the
// cluster, because either can exist when the binding is written.
func (g *grants) addRole(ctx context.Context, set *atomSet, grant *grant, roles Roles) error {
	brought := g.roles[*grant.role]
	for _, role := range brought {
		for _, rule := range role.rules {
			if err := set.add(grant, rule, role.shownTo); err != nil {
				return err
			}
		}
	}
	live, err := roles.Role(ctx, grant.role.Kind, grant.role.Namespace, grant.role.Name)
	if err != nil {
		return fmt.Errorf("reading %s %s of the cluster: %w", grant.role.Kind, grant.role.Name, err)
	}
	if live == nil && len(brought) == 0 {
		name := strings.TrimPrefix(grant.Namespace+"/"+grant.Name, "/")
		set.atoms = append(set.atoms, ask{Right: grant.unless, because: fmt.Sprintf("%s %s, there is no such role yet", grant.Kind, name), shownTo: grant.shownTo})
	}
	return set.addLive(grant, live, *grant.role)
}

// addKept adds the rules that a role in the cluster keeps when the revision's role is applied to
// it. Server-side apply keeps rules if the manifest has none, and the rules of an aggregated role
// are computed again. A change of labels alone can grant such rules to others.
func (g *grants) addKept(ctx context.Context, set *atomSet, grant *grant, roles Roles) error {
	live, err := roles.Role(ctx, grant.Kind, grant.Namespace, grant.Name)
	if err != nil {
		return fmt.Errorf("reading %s %s of the cluster: %w", grant.Kind, grant.Name, err)
	}
	if live == nil || len(grant.rules) > 0 && !live.Aggregated {
		return nil
	}
	return set.addLive(grant, live, grant.ID)
}

type atomSet struct {
	atoms    []ask
	seen     map[authz.Right]bool
	expanded int
}

func (s *atomSet) add(grant *grant, rule rbacv1.PolicyRule, shownTo authz.Right) error {
	rule = rbacv1.PolicyRule{
		Verbs: newly(rule.Verbs, nil), APIGroups: newly(rule.APIGroups, nil), Resources: newly(rule.Resources, nil),
		ResourceNames: newly(rule.ResourceNames, nil), NonResourceURLs: newly(rule.NonResourceURLs, nil),
	}
	if s.expanded += sizeOf(rule); s.expanded > maxExpansion {
		return &tooManyError{}
	}
	for _, atom := range validation.BreakdownRule(rule) {
		needed := rightOf(atom, grant.Namespace)
		if s.seen[needed] {
			continue
		}
		if len(s.atoms) == MaxAtoms {
			return &tooManyError{}
		}
		s.seen[needed] = true
		s.atoms = append(s.atoms, ask{Right: needed, because: grant.String(), shownTo: shownTo})
	}
	return nil
}

// addLive adds the rules of an existing role in the cluster. Only a requester who can read the role
// may see its rules in the answer.
func (s *atomSet) addLive(grant *grant, live *Role, id manifest.ID) error {
	if live == nil {
		return nil
	}
	reading := authz.Right{Verb: "get", Group: rbacv1.GroupName, Resource: strings.ToLower(id.Kind) + "s", Namespace: id.Namespace, Name: id.Name}
	for _, rule := range live.Rules {
		if err := s.add(grant, rule, reading); err != nil {
			return err
		}
	}
	return nil
}

// sizeOf returns the number of atoms of a rule, at most maxExpansion+1. A few kilobytes of rules
// can have billions of atoms.
func sizeOf(rule rbacv1.PolicyRule) int {
	size := 1
	for _, factor := range []int{len(rule.Verbs), len(rule.APIGroups), len(rule.Resources), max(1, len(rule.ResourceNames))} {
		if size *= factor; size > maxExpansion {
			return maxExpansion + 1
		}
	}
	return min(maxExpansion+1, size+len(rule.Verbs)*len(rule.NonResourceURLs))
}

func rightOf(atom rbacv1.PolicyRule, namespace string) authz.Right {
	if len(atom.NonResourceURLs) > 0 {
		return authz.Right{Verb: atom.Verbs[0], Path: atom.NonResourceURLs[0]}
	}
	resource, subresource, _ := strings.Cut(atom.Resources[0], "/")
	needed := authz.Right{Verb: atom.Verbs[0], Group: atom.APIGroups[0], Resource: resource, Subresource: subresource, Namespace: namespace}
	if len(atom.ResourceNames) > 0 {
		needed.Name = atom.ResourceNames[0]
	}
	return needed
}

// tooManyError reports that a revision grants more rights than Penstock checks.
type tooManyError struct{}

func (*tooManyError) Error() string {
	return fmt.Sprintf("the roles and bindings of the revision grant more than %d rights, too many to be checked one by one", MaxAtoms)
}
