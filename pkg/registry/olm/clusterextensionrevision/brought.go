package clusterextensionrevision

import "strings"

// What a request brought that the filter does not rewrite.

// stageTree puts the manifests of a decoded body into held and changes nothing,
// for bodies that the endpoint decodes as they came.
func (i inliner) stageTree(tree map[string]any, held *staged) {
	eachEntry(tree, func(entry map[string]any) { i.stage(entry["object"], held) })
}

// stagePatch does so for the operations of a JSON patch: a manifest is a value
// that is put at a field named object, or has such a field somewhere within.
// What several operations would make into a manifest is none here.
func (i inliner) stagePatch(operations []map[string]any, held *staged) {
	for _, operation := range operations {
		if kind := operation["op"]; kind != "add" && kind != "replace" {
			continue
		}
		path, _ := operation["path"].(string)
		if strings.HasSuffix(path, "/object") {
			i.stage(operation["value"], held)
		}
		i.stageWithin(operation["value"], held)
	}
}

func (i inliner) stageWithin(value any, held *staged) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			i.stageWithin(item, held)
		}
	case map[string]any:
		for name, field := range value {
			if name == "object" {
				i.stage(field, held)
			} else {
				i.stageWithin(field, held)
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
