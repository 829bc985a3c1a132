package clusterextensionrevision

import "strings"

// stageTree puts the manifests of a decoded body into held and changes nothing. It is for bodies
// that the endpoint decodes unchanged.
func (i inliner) stageTree(tree map[string]any, held *staged) {
	eachEntry(tree, func(entry map[string]any) { i.stage(entry["object"], held) })
}

// stagePatch works like stageTree, for the operations of a JSON patch. It ignores a manifest that
// several operations assemble.
func (i inliner) stagePatch(operations []map[string]any, held *staged) {
	eachBrought(operations, func(body any) { i.stage(body, held) })
}

// eachBrought calls f for every manifest in the operations of a JSON patch: a value that is set at
// a field named object, and every such field within a value.
func eachBrought(operations []map[string]any, f func(body any)) {
	for _, operation := range operations {
		if kind := operation["op"]; kind != "add" && kind != "replace" {
			continue
		}
		path, _ := operation["path"].(string)
		if strings.HasSuffix(path, "/object") {
			f(operation["value"])
		}
		eachWithin(operation["value"], f)
	}
}

func eachWithin(value any, f func(body any)) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			eachWithin(item, f)
		}
	case map[string]any:
		for name, field := range value {
			if name == "object" {
				f(field)
			} else {
				eachWithin(field, f)
			}
		}
	}
}

func (i inliner) stage(body any, held *staged) {
	tree, ok := body.(map[string]any)
	if !ok {
		return
	}
	if object, err := i.digester.New(tree); err == nil {
		held.add(object)
	}
}
