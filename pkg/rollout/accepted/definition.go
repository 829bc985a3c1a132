package accepted

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// mostBytesOfDefinition is how large the manifest of a definition may be. Those are the largest
// objects there are, and what a stored one has besides is small: managedFields name none of
// its schemas, whose lists are atomic. The limit is that of etcd, which no dry-run asks.
const mostBytesOfDefinition = 3 << 19

// customResourceDefinition is judged as apiextensions-apiserver does (pkg/apis/apiextensions/validation,
// ValidateCustomResourceDefinitionUpdate). The whole object is validated by each update, and
// what it was stored with is let pass; so whatever has not changed, and is not compared with
// what has, is accepted again. Names, scope and group are immutable, and conversion,
// subresources and the list of versions have rules of their own.
func customResourceDefinition() object {
	names := object{fields: map[string]rule{"shortNames": shortNames, "categories": shortNames}}
	spec := object{
		fields: map[string]rule{"names": names.judge, "versions": versions},
		// Without pruning schemas need not be structural, and may not have defaults.
		whole: func(j *judgement, path string, _, after map[string]any) {
			if preserves, set := after["preserveUnknownFields"]; set && preserves != false {
				j.unknown(path+".preserveUnknownFields", "is set")
			}
		},
	}
	return object{fields: map[string]rule{"metadata": metadata, "spec": spec.judge}}
}

// shortNames are labels. Whether another definition has taken one is found out after the
// write; conditions say so.
func shortNames(j *judgement, path string, _, after any) {
	if after == (any)(absent{}) {
		return
	}
	if !isWords(after) || slices.ContainsFunc(after.([]any), func(one any) bool { return len(validation.IsDNS1035Label(one.(string))) > 0 }) {
		j.unknown(path, "is no list of short names")
	}
}

// versions that are the same ones in the same order.
func versions(j *judgement, path string, before, after any) {
	was, ok := before.([]any)
	is, also := after.([]any)
	if !ok || !also || len(was) != len(is) {
		j.unknown(path, "versions are added or removed")
		return
	}
	schema := object{fields: map[string]rule{"openAPIV3Schema": rootSchema}}
	one := object{fields: map[string]rule{"schema": schema.judge, "additionalPrinterColumns": columns}}
	for i := range is {
		at := path + "[" + strconv.Itoa(i) + "]"
		if name, found := nameOf(was[i]); !found || !isNamed(is[i], name) {
			j.unknown(at, "the versions have other names or another order")
			return
		}
		// They name fields of the schema, and are compared over all versions.
		if version, _ := membersOf(is[i]); version["selectableFields"] != nil {
			j.unknown(at+".selectableFields", "is set")
			return
		}
		one.judge(j, at, was[i], is[i])
	}
}

// What columns may be (ValidateCustomResourceColumnDefinition).
var (
	columnTypes   = []string{"integer", "number", "string", "boolean", "date"}
	columnFormats = []string{"", "int32", "int64", "float", "double", "byte", "date", "date-time", "password"}
)

// columns of a table, or none.
func columns(j *judgement, path string, _, after any) {
	if after == (any)(absent{}) {
		return
	}
	list, is := after.([]any)
	if !is {
		j.unknown(path, "is no list of columns")
		return
	}
	for i, value := range list {
		if why := column(value); why != "" {
			j.unknown(path+"["+strconv.Itoa(i)+"]", "%s", why)
			return
		}
	}
}

func column(value any) string {
	members, is := value.(map[string]any)
	if !is {
		return "is no column"
	}
	text := map[string]string{}
	for name, value := range members {
		switch name {
		case "name", "type", "format", "description", "jsonPath":
			one, is := value.(string)
			if !is {
				return name + " is no text"
			}
			text[name] = one
		case "priority":
			if number, is := value.(int64); !is || number < math.MinInt32 || number > math.MaxInt32 {
				return "priority is no number of 32 bits"
			}
		default:
			return name + " is no field of a column"
		}
	}
	if text["name"] == "" || !strings.HasPrefix(text["jsonPath"], ".") || !slices.Contains(columnTypes, text["type"]) || !slices.Contains(columnFormats, text["format"]) {
		return "the server would refuse the column"
	}
	return ""
}
