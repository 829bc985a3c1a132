package accepted

import "strconv"

// role is a Role or a ClusterRole.
func role(namespaced bool) object {
	return object{fields: map[string]rule{
		"metadata": metadata,
		"rules":    func(j *judgement, path string, _, after any) { rules(j, path, after, namespaced) },
	}}
}

// rules are judged as Kubernetes does (pkg/apis/rbac/validation, ValidatePolicyRule). Who may
// escalate, may give all rights.
func rules(j *judgement, path string, after any, namespaced bool) {
	list, is := after.([]any)
	if !is {
		j.unknown(path, "is no list of rules")
		return
	}
	for i, value := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		members, is := value.(map[string]any)
		if !is {
			j.unknown(at, "is no rule")
			return
		}
		have := map[string]int{}
		for name, value := range members {
			switch name {
			case "verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs":
			default:
				j.unknown(at+"."+name, "is no field of a rule")
			}
			if !isWords(value) {
				j.unknown(at+"."+name, "is no list of strings")
				continue
			}
			have[name] = len(value.([]any))
		}
		resources := have["apiGroups"] > 0 && have["resources"] > 0
		urls := have["nonResourceURLs"] > 0 && have["apiGroups"]+have["resources"]+have["resourceNames"] == 0 && !namespaced
		if have["verbs"] == 0 || !resources && !urls || resources && have["nonResourceURLs"] > 0 {
			j.unknown(at, "the server would refuse it")
		}
	}
}
