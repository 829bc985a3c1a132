package review

import (
	"slices"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const rbacGroup = "rbac.authorization.k8s.io"

// GivesRights tells whether an object is one of those that NewRights reads.
func GivesRights(id manifest.ID) bool { return id.Group == rbacGroup }

func isRole(id manifest.ID) bool {
	return id.Group == rbacGroup && (id.Kind == "Role" || id.Kind == "ClusterRole")
}

func isBinding(id manifest.ID) bool {
	return id.Group == rbacGroup && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding")
}

// role says which rights a role gains and loses.
func (w *writer) role() {
	before, after := rulesOf(w.old), rulesOf(w.new)
	more, ok := without(after, before, w.Stop)
	less, okLess := without(before, after, w.Stop)
	if !ok || !okLess {
		if w.delta.Op != tree.Inside || w.delta.Changed("rules") {
			w.add(Critical, reasonRightsGained, "it has too many rules to compare right by right")
		}
		return
	}
	id := scoped(w.change.ID)
	role := roleKey{id.Kind, id.Namespace, id.Name}
	more = w.After.missingRights(role, more, w.Before, w.Stop)
	less = w.Before.missingRights(role, less, w.After, w.Stop)
	w.rightsGained(more)
	if len(less) > 0 {
		w.add(Info, reasonRightsLost, "loses %s", enumerate(grouped(less)))
	}
	if w.delta.Op == tree.Inside && w.delta.Changed("aggregationRule") {
		w.add(Warning, reasonRightsGained, "aggregationRule changes: its rights are those of other roles")
	}
}

// rightsGained names what deserves a look by itself, and the rest together.
func (w *writer) rightsGained(more []right) {
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
		w.add(d.severity, reasonRightsGained, "gains %s: %s", enumerate(grouped(byDanger[d])), phrase(d.why))
	}
	if len(plain) > 0 {
		w.add(Info, reasonRightsGained, "gains %s", enumerate(grouped(plain)))
	}
}

// binding says who gains and loses a role.
func (w *writer) binding() {
	before, after := subjects(w.old), subjects(w.new)
	role := roleOf(w.new)
	more := w.After.missingSubjects(w.change.ID, w.new, gained(before, after), w.Before)
	if len(more) > 0 {
		severity, remark := Info, phrase("")
		switch {
		case slices.ContainsFunc(more, isEverybody):
			severity, remark = Critical, ": that is everybody"
		case role == "ClusterRole cluster-admin":
			severity, remark = Critical, ": that is every right"
		}
		w.add(severity, reasonSubjectsGained, "gives %s to %s%s", role, enumerate(more), remark)
	}
	less := w.Before.missingSubjects(w.change.ID, w.old, gained(after, before), w.After)
	if len(less) > 0 {
		w.add(Info, reasonSubjectsLost, "takes %s from %s", roleOf(w.old), enumerate(less))
	}
}

func roleOf(binding *tree.Node) string {
	ref := binding.Field("roleRef")
	return ref.Field("kind").Str() + " " + ref.Field("name").Str()
}

func subjects(binding *tree.Node) []string {
	var all []string
	for _, subject := range binding.Field("subjects").Items() {
		name := subject.Field("name").Str()
		if namespace := subject.Field("namespace").Str(); namespace != "" {
			name = namespace + "/" + name
		}
		all = append(all, subject.Field("kind").Str()+" "+name)
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
