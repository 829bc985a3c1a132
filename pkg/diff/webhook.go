package diff

import "strings"

// webhooks says which requests webhooks see that they did not, and which they
// fail.
func (w *words) webhooks() {
	old := make(map[string]*node)
	for _, hook := range w.old.field("webhooks").list() {
		old[hook.field("name").str()] = hook
	}
	for _, hook := range w.new.field("webhooks").list() {
		name := hook.field("name").str()
		before, existed := old[name]
		if !existed {
			w.newWebhook(name, hook)
			continue
		}
		if same(before, hook) {
			continue
		}
		w.webhook(name, before, hook)
	}
}

func (w *words) newWebhook(name string, hook *node) {
	severity, remark := Info, phrase("")
	if w.fails(hook, w.change.NewVersion) {
		severity, remark = Warning, ": these requests fail while it is down"
	}
	w.add(severity, ReasonWebhook, "new webhook %s sees %s%s", name, some(operations(scopesOf(hook))), remark)
}

func (w *words) webhook(name string, before, after *node) {
	if !w.fails(before, w.change.OldVersion) && w.fails(after, w.change.NewVersion) {
		w.add(Critical, ReasonWebhook, "failurePolicy of webhook %s changes from Ignore to Fail: requests fail while it is down", name)
	}
	rules, ok := without(scopesOf(after), scopesOf(before), w.stop)
	switch {
	case !ok:
		w.add(Warning, ReasonWebhook, "webhook %s has too many rules to compare one by one", name)
	case len(rules) > 0:
		w.add(Warning, ReasonWebhook, "webhook %s also sees %s", name, some(grouped(rules)))
	}
	for _, field := range []string{"namespaceSelector", "objectSelector", "matchConditions"} {
		was, is := before.field(field), after.field(field)
		switch {
		case was == nil || was.implied:
			// It saw everything before.
		case is == nil || is.implied:
			w.add(Warning, ReasonWebhook, "webhook %s no longer has a %s: it sees more", name, field)
		case !same(was, is):
			w.add(Warning, ReasonWebhook, "%s of webhook %s changes: it may see more", field, name)
		}
	}
}

// fails tells whether requests fail when the webhook cannot be called. That is
// the default, but was not in v1beta1.
func (w *words) fails(hook *node, version string) bool {
	policy := hook.field("failurePolicy").str()
	return policy == "Fail" || policy == "" && version != "v1beta1"
}

// scopesOf reads the rules of a webhook as those of a role: what is an operation
// here is a verb there.
func scopesOf(hook *node) []rule {
	var rules []rule
	for _, item := range hook.field("rules").list() {
		for _, version := range texts(item.field("apiVersions")) {
			r := rule{resources: texts(item.field("resources")), verbs: texts(item.field("operations"))}
			for _, group := range texts(item.field("apiGroups")) {
				r.groups = append(r.groups, versioned(group, version))
			}
			rules = append(rules, r)
		}
	}
	return rules
}

// versioned makes one name of group and version, so that * still stands for all.
func versioned(group, version string) string {
	if group == "*" && version == "*" {
		return "*"
	}
	return strings.TrimPrefix(group+"/"+version, "/")
}

func operations(rules []rule) []string {
	rights, ok := rightsOf(rules)
	if !ok {
		return []string{"very many requests"}
	}
	return grouped(rights)
}
