package review

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

const rbacGroup = "rbac.authorization.k8s.io"

// GivesRights reports whether NewRights reads an object.
func GivesRights(id manifest.ID) bool { return id.Group == rbacGroup }

func isRole(id manifest.ID) bool {
	return id.Group == rbacGroup && (id.Kind == "Role" || id.Kind == "ClusterRole")
}

func isBinding(id manifest.ID) bool {
	return id.Group == rbacGroup && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding")
}

func (w *writer) role() {
	before, after := rulesOf(w.old), rulesOf(w.new)
	more, ok := without(after, before, w.Stop)
	less, okLess := without(before, after, w.Stop)
	if !ok || !okLess {
		if w.delta.Op != tree.Inside || w.delta.Changed("rules") {
			w.add(note.Critical, note.RightsGained, "it has too many rules to compare right by right")
		}
		return
	}
	id := scoped(w.change.ID)
	role := roleKey{id.Kind, id.Namespace, id.Name}
	if len(w.After.aggregatedTo(w.new)) == 0 { // if the role is aggregated, other subjects get its rights too
		more = w.After.missingRights(role, more, w.Before, w.Stop)
	}
	less = w.Before.missingRights(role, less, w.After, w.Stop)
	w.rightsGained(more)
	if len(less) > 0 {
		w.add(note.Info, note.RightsLost, "loses %s", enumerate(grouped(less)))
	}
	w.aggregation()
}

// aggregation adds notes about rights that roles get from each other, which Kubernetes' controller
// copies.
func (w *writer) aggregation() {
	was, is := w.old.Field("aggregationRule"), w.new.Field("aggregationRule")
	if w.new != nil && (was != nil || is != nil) && (was == nil || is == nil || !tree.Equal(was, is)) {
		w.add(note.Warning, note.RightsGained, "aggregationRule changes: its rights are those of other roles")
	}
	had := w.Before.aggregatedTo(w.old)
	for _, role := range w.After.aggregatedTo(w.new) {
		if !slices.Contains(had, role) && !w.Before.aggregates(role, rulesOf(w.new), w.Stop) {
			w.add(note.Warning, note.RightsGained, "its rights become rights of ClusterRole %s, for everybody who has that", role)
		}
	}
}

// aggregateTo is the prefix of the labels by which Kubernetes aggregates roles into its own roles.
const aggregateTo = "rbac.authorization.k8s.io/aggregate-to-"

// aggregatedTo returns the roles that a ClusterRole is aggregated into: roles of Kubernetes by its
// labels, and roles of the same objects by their selectors.
func (r *Rights) aggregatedTo(role *tree.Node) []string {
	var into []string
	has := labels.Set{}
	for _, label := range role.At("metadata", "labels").Fields() {
		has[label.Name] = label.Value.Str()
		if name, found := strings.CutPrefix(label.Name, aggregateTo); found && label.Value.Str() == "true" {
			into = append(into, name)
		}
	}
	if r == nil || role == nil {
		return into
	}
	for _, one := range r.aggregating {
		if !slices.Contains(into, one.role) && role.At("metadata", "name").Str() != one.role && one.selector.Matches(has) {
			into = append(into, one.role)
		}
	}
	return into
}

// selectors returns the selectors by which a role aggregates the rules of other roles. Invalid
// selectors are skipped, because the API server refuses them.
func selectors(role *tree.Node) []labels.Selector {
	var all []labels.Selector
	for _, item := range role.At("aggregationRule", "clusterRoleSelectors").Items() {
		one := metav1.LabelSelector{MatchLabels: map[string]string{}}
		for _, label := range item.Field("matchLabels").Fields() {
			one.MatchLabels[label.Name] = label.Value.Str()
		}
		for _, expression := range item.Field("matchExpressions").Items() {
			one.MatchExpressions = append(one.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: expression.Field("key").Str(), Operator: metav1.LabelSelectorOperator(expression.Field("operator").Str()), Values: expression.Field("values").Strings(),
			})
		}
		if selector, err := metav1.LabelSelectorAsSelector(&one); err == nil {
			all = append(all, selector)
		}
	}
	return all
}

// rightsGained adds one note for each kind of dangerous right, and one note for all other rights.
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
		w.add(d.severity, note.RightsGained, "gains %s: %s", enumerate(grouped(byDanger[d])), phrase(d.why))
	}
	if len(plain) > 0 {
		w.add(note.Info, note.RightsGained, "gains %s", enumerate(grouped(plain)))
	}
}

func (w *writer) binding() {
	before, after := subjects(w.old), subjects(w.new)
	role := roleOf(w.new)
	more := w.After.missingSubjects(w.change.ID, w.new, gained(before, after), w.Before)
	if len(more) > 0 {
		severity, remark := note.Warning, phrase("")
		switch {
		case slices.ContainsFunc(more, isAnyUser):
			severity, remark = note.Critical, ": that is everybody"
		case role == "ClusterRole cluster-admin":
			severity, remark = note.Critical, ": that is every right"
		case w.After.isNew(w.change.ID, w.new, w.Before):
			// The notes on the role list its rights.
			severity = note.Info
		}
		w.add(severity, note.SubjectsGained, "gives %s to %s%s", role, enumerate(more), remark)
	}
	less := w.Before.missingSubjects(w.change.ID, w.old, gained(after, before), w.After)
	if len(less) > 0 {
		w.add(note.Info, note.SubjectsLost, "takes %s from %s", roleOf(w.old), enumerate(less))
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

func isAnyUser(subject string) bool {
	switch subject {
	case "Group system:authenticated", "Group system:unauthenticated", "Group system:serviceaccounts", "User system:anonymous":
		return true
	}
	return false
}
