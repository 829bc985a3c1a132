package review

import (
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/diff/tree"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/note"
)

// webhooks adds notes about requests that webhooks newly receive, and about requests that can newly
// fail because of them.
func (w *writer) webhooks() {
	old := make(map[string]*tree.Node)
	for _, hook := range w.old.Field("webhooks").Items() {
		old[hook.Field("name").Str()] = hook
	}
	for _, hook := range w.new.Field("webhooks").Items() {
		name := hook.Field("name").Str()
		before, existed := old[name]
		if !existed {
			w.newWebhook(name, hook)
			continue
		}
		if tree.Equal(before, hook) {
			continue
		}
		w.webhook(name, before, hook)
	}
}

func (w *writer) newWebhook(name string, hook *tree.Node) {
	remark := phrase("")
	if w.fails(hook, w.change.NewVersion) {
		remark = ": these requests fail while it is down"
	}
	w.add(note.Warning, note.Webhook, "new webhook %s sees %s%s", name, enumerate(operations(scopesOf(hook))), remark)
}

func (w *writer) webhook(name string, before, after *tree.Node) {
	if !w.fails(before, w.change.OldVersion) && w.fails(after, w.change.NewVersion) {
		w.add(note.Critical, note.Webhook, "failurePolicy of webhook %s changes from Ignore to Fail: requests fail while it is down", name)
	}
	rules, ok := without(scopesOf(after), scopesOf(before), w.Stop)
	switch {
	case !ok:
		w.add(note.Warning, note.Webhook, "webhook %s has too many rules to compare one by one", name)
	case len(rules) > 0:
		w.add(note.Warning, note.Webhook, "webhook %s also sees %s", name, enumerate(grouped(rules)))
	}
	if was, is := calledAt(before), calledAt(after); was != is {
		w.add(note.Warning, note.Webhook, "webhook %s is called at %s, and was at %s", name, is, was)
	}
	if before.Field("matchPolicy").Str() == "Exact" && after.Field("matchPolicy").Str() != "Exact" {
		w.add(note.Warning, note.Webhook, "matchPolicy of webhook %s is no longer Exact: it sees more", name)
	}
	for _, field := range []string{"namespaceSelector", "objectSelector", "matchConditions"} {
		was, is := before.Field(field), after.Field(field)
		switch {
		case was == nil || was.Implied():
			// The webhook received all requests before.
		case is == nil || is.Implied():
			w.add(note.Warning, note.Webhook, "webhook %s no longer has a %s: it sees more", name, field)
		case !tree.Equal(was, is):
			w.add(note.Warning, note.Webhook, "%s of webhook %s changes: it may see more", field, name)
		}
	}
}

// fails reports whether requests fail if the webhook cannot be called. That is the default, except
// in v1beta1.
func (w *writer) fails(hook *tree.Node, version string) bool {
	policy := hook.Field("failurePolicy").Str()
	return policy == "Fail" || policy == "" && version != "v1beta1"
}

// scopesOf converts the rules of a webhook into rules of a role: operations become verbs, and the
// scope becomes a name.
func scopesOf(hook *tree.Node) []rule {
	return admissionRules(hook.Field("rules"))
}

func admissionRules(list *tree.Node) []rule {
	var rules []rule
	for _, item := range list.Items() {
		for _, version := range item.Field("apiVersions").Strings() {
			r := rule{resources: item.Field("resources").Strings(), verbs: item.Field("operations").Strings(), admission: true}
			if scope := item.Field("scope").Str(); scope != "" && scope != "*" {
				r.names = []string{scope}
			}
			for _, group := range item.Field("apiGroups").Strings() {
				r.groups = append(r.groups, versioned(group, version))
			}
			rules = append(rules, r)
		}
	}
	return rules
}

// versioned joins group and version in one name, so that * still means all.
func versioned(group, version string) string {
	if group == "*" && version == "*" {
		return "*"
	}
	return strings.TrimPrefix(group+"/"+version, "/")
}

func operations(rules []rule) []string {
	rights, ok := expand(rules)
	if !ok {
		return []string{"very many requests"}
	}
	return grouped(rights)
}

// calledAt returns the address of a webhook, which receives the objects of its requests.
func calledAt(hook *tree.Node) string {
	if url := hook.At("clientConfig", "url").Str(); url != "" {
		return url
	}
	service := hook.At("clientConfig", "service")
	return "Service " + service.Field("namespace").Str() + "/" + service.Field("name").Str()
}

func isPolicy(id manifest.ID) bool {
	switch id.GroupKind().String() {
	case "ValidatingAdmissionPolicy.admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io",
		"MutatingAdmissionPolicy.admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding.admissionregistration.k8s.io":
		return true
	}
	return false
}

// policy adds notes about admission policies, which refuse or alter requests like webhooks.
func (w *writer) policy() {
	before, after := w.old.Field("spec"), w.new.Field("spec")
	does := phrase("refuses")
	if strings.HasPrefix(w.change.Kind, "Mutating") {
		does = "alters"
	}
	switch binds := after.Field("policyName").Str(); {
	case w.new == nil:
	case w.old == nil && binds != "":
		w.add(note.Warning, note.Webhook, "new binding of policy %s, which %s requests", binds, does)
	case w.old == nil:
		w.add(note.Warning, note.Webhook, "new policy %s requests: %s", does, enumerate(operations(admissionRules(after.At("matchConstraints", "resourceRules")))))
	default:
		var changed []string
		for _, field := range union(before, after) {
			if was, is := before.Field(field), after.Field(field); was == nil || is == nil || !tree.Equal(was, is) {
				changed = append(changed, "spec."+field)
			}
		}
		if len(changed) > 0 {
			w.add(note.Warning, note.Webhook, "%s changes: it %s other requests, perhaps", enumerate(changed), does)
		}
	}
}

func union(a, b *tree.Node) []string {
	var names []string
	for _, field := range slices.Concat(a.Fields(), b.Fields()) {
		if !slices.Contains(names, field.Name) {
			names = append(names, field.Name)
		}
	}
	return names
}

// apiService adds notes about the server that receives the requests for an API.
func (w *writer) apiService() {
	at := func(n *tree.Node) string {
		service := n.At("spec", "service")
		if service == nil {
			return ""
		}
		return service.Field("namespace").Str() + "/" + service.Field("name").Str()
	}
	was, is := at(w.old), at(w.new)
	if is == "" {
		return
	}
	if was != is {
		w.add(note.Warning, note.Webhook, "requests for %s are sent to Service %s", w.change.Name, is)
	}
	if w.new.At("spec", "insecureSkipTLSVerify").IsTrue() && !w.old.At("spec", "insecureSkipTLSVerify").IsTrue() {
		w.add(note.Warning, note.Webhook, "the certificate of Service %s is not verified", is)
	}
}
