package accepted

// rootSchema judges the change of the schema of a version. Both are walked together, once. What
// is looked at on the way down is in place; a schema that has changed is looked at as a whole
// on the way up, for its keywords have to do with those of its children.
//
// A schema with rules (x-kubernetes-validations) is not judged: whatever changes in it, the
// cost of all its rules is estimated again, and an old server may have let them pass.
func rootSchema(j *judgement, path string, before, after any) {
	was, ok := before.(map[string]any)
	is, also := after.(map[string]any)
	if !ok || !also {
		j.unknown(path, "is added, removed or no schema")
		return
	}
	if hasRules(after) {
		j.unknown(path, "has rules")
		return
	}
	if _, why := compareSchemas(was, is, place{root: true}); why != "" {
		j.unknown(path, "%s", why)
	}
}

// place is what matters of where a schema is. The last three hold for all that is below.
type place struct {
	// root of the version.
	root bool
	// fixed says why nothing but descriptions may change, or is empty.
	fixed string
	// quantified is true below a quantifier, which may name any property.
	quantified bool
	// keyed is true below additionalProperties, where no defaults are applied.
	keyed bool
}

// below is the place of the children of a schema.
func (p place) below(schema map[string]any) place {
	p.root = false
	if _, set := schema["default"]; set {
		p.fixed = "a schema around it has a default"
	}
	for _, quantifier := range [...]string{"allOf", "anyOf", "oneOf", "not"} {
		if _, set := schema[quantifier]; set {
			p.quantified = true
		}
	}
	return p
}

// child is the place of the schema of all items or of all values.
func (p place) child(name string) place {
	p.keyed = p.keyed || name == "additionalProperties"
	return p
}

// compareSchemas says whether something has changed besides descriptions, and what is not known
// of the change, with its path.
func compareSchemas(was, is map[string]any, at place) (changed bool, why string) {
	if _, set := is["x-kubernetes-embedded-resource"]; set {
		at.fixed = "is in a resource that is embedded"
	}
	for name, value := range is {
		old := member(was, name)
		kept, why := true, ""
		switch name {
		case "properties":
			kept, why = compareProperties(old, value, at, at.below(is))
		case "items", "additionalProperties":
			kept, why = compareChild(name, old, value, at.below(is))
		default:
			if !same(old, value) {
				kept, why = name == "description", at.keyword(name, value)
			}
		}
		if why != "" {
			return true, name + why
		}
		changed = changed || !kept
	}
	for name, old := range was {
		if _, both := is[name]; both {
			continue
		}
		kept, why := name == "description", ""
		if name == "properties" {
			kept, why = compareProperties(old, absent{}, at, at.below(is))
		} else if _, listed := keywords[name]; !listed || at.fixed != "" && !kept || at.root && name != "required" && !kept {
			why = ": nothing is known of its end without the server"
		}
		if why != "" {
			return true, name + why
		}
		changed = changed || !kept
	}
	if changed {
		if why := consistent(is, at); why != "" {
			return true, ": " + why
		}
	}
	return changed, ""
}

// keyword judges the new value of a keyword.
func (p place) keyword(name string, value any) string {
	valid, listed := keywords[name]
	switch {
	case !listed:
		return ": what may change here is not known without the server"
	case name != "description" && p.fixed != "":
		return ": " + p.fixed
	case p.root && name != "description" && name != "required":
		return ": may not change in all schemas at the root"
	case !valid(value):
		return ": has a value that the server may refuse"
	}
	return ""
}

// compareChild judges the schema of all items or of all values, which was there before.
func compareChild(name string, before, after any, at place) (kept bool, why string) {
	was, ok := before.(map[string]any)
	is, also := after.(map[string]any)
	if !ok || !also {
		if same(before, after) {
			return true, ""
		}
		return false, ": comes, goes or takes another form"
	}
	changed, why := compareSchemas(was, is, at.child(name))
	return !changed, prefixed(why)
}

// compareProperties judges properties that come, change and go. One that goes may be in
// required; nothing of validation minds.
func compareProperties(before, after any, parent, at place) (kept bool, why string) {
	was, ok := membersOf(before)
	is, also := membersOf(after)
	if !ok || !also {
		return false, ": are no properties"
	}
	kept = true
	for name, value := range is {
		schema, ok := value.(map[string]any)
		if !ok {
			return false, "." + name + ": is no schema"
		}
		old, both := was[name].(map[string]any)
		own := at
		own.fixed = parent.property(name, at.fixed)
		if !both {
			if own.fixed != "" {
				return false, "." + name + ": " + own.fixed
			}
			if len(name) > mostBytesOfName {
				return false, ": " + longName
			}
			if why := plain(schema, own); why != "" {
				return false, "." + name + prefixed(why)
			}
			kept = false
			continue
		}
		if parent.root && name == "metadata" {
			if !same(old, schema) {
				return false, ".metadata: of metadata nothing but its names may be said"
			}
			continue
		}
		changed, why := compareSchemas(old, schema, own)
		if why != "" {
			return false, "." + name + prefixed(why)
		}
		kept = kept && !changed
	}
	for name := range was {
		if _, both := is[name]; both {
			continue
		}
		kept = false
		switch fixed := parent.property(name, at.fixed); {
		case fixed != "":
			return false, "." + name + ": " + fixed
		case at.quantified:
			return false, "." + name + ": a quantifier may name it"
		}
	}
	return kept, ""
}

// property says why a property may not change, or passes on what is known.
func (p place) property(name, fixed string) string {
	if p.root && (name == "metadata" || name == "apiVersion" || name == "kind") {
		return "is of all objects"
	}
	return fixed
}

// prefixed is what is not known, as the end of a longer path.
func prefixed(why string) string {
	if why == "" || why[0] == ':' {
		return why
	}
	return "." + why
}

// hasRules is true when there are rules anywhere below.
func hasRules(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		for name, one := range value {
			if name == "x-kubernetes-validations" || hasRules(one) {
				return true
			}
		}
	case []any:
		for _, one := range value {
			if hasRules(one) {
				return true
			}
		}
	}
	return false
}
