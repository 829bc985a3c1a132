package hostile

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// Request is a request to the revisions API, with a body of about one mebibyte.
type Request struct {
	Method, ContentType, Body string
	// Name is the name of the patched revision, or empty for a new revision.
	Name string
}

const (
	merge, strategic, apply, jsonPatch = "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/json-patch+json"
	asJSON, asYAML                     = "application/json", "application/yaml"
	mebibyte                           = 1 << 20
)

// repeat joins as many copies of element as fit into a mebibyte, but at most the given number. It
// replaces # by the number of the copy.
func repeat(element string, most int) string {
	var all strings.Builder
	for i := 0; i < most && all.Len() < mebibyte-20_000; i++ {
		if i > 0 {
			all.WriteByte(',')
		}
		all.WriteString(strings.ReplaceAll(element, "#", fmt.Sprint(i)))
	}
	return all.String()
}

func creates(metadata, spec string) Request {
	return Request{Method: http.MethodPost, ContentType: asJSON, Body: fmt.Sprintf(
		`{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"hostile-1"%s},"spec":{"revision":1%s}}`, metadata, spec)}
}

func phases(objects string) string { return `,"phases":[{"name":"p","objects":[` + objects + `]}]` }

// probes returns probes with assertions for ConfigMaps.
func probes(assertions string) string {
	return `,"progressionProbes":[{"selector":{"groupKind":{"kind":"ConfigMap"}},"assertions":[` + assertions + `]}]`
}

// Creates returns requests of a user who can only create revisions.
func Creates() map[string]Request {
	const many = 1 << 30
	small := `{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m#","namespace":"default"}%s}}`
	grouped := strings.Replace(small, `"v1"`, `"g#.example.com/v1"`, 1)
	padded := fmt.Sprintf(small, `,"data":{"k":"`+strings.Repeat("x", 150)+`"}`)
	all := map[string]Request{
		"assertions":                   creates("", probes(repeat(`{"cel":{"expression":"true"}}`, many))),
		"one long expression":          creates("", probes(`{"cel":{"expression":"`+strings.Repeat("true||", 170_000)+`true"}}`)),
		"objects":                      creates("", phases(repeat(fmt.Sprintf(small, ""), many))),
		"4,000 objects":                creates("", phases(repeat(padded, 4000))),
		"4,000 objects, groups each":   creates("", phases(repeat(fmt.Sprintf(grouped, `,"data":{"k":"`+strings.Repeat("x", 130)+`"}`), 4000))),
		"4,000 roles":                  creates("", phases(repeat(`{"object":{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r#"},"rules":[{"verbs":["*"],"apiGroups":["a#"],"resources":["b","c","d"]}]}}`, 4000))),
		"phases":                       creates("", `,"phases":[`+repeat(`{"name":"p#"}`, many)+`]`),
		"yield rules":                  creates("", `,"yield":[`+repeat(`{"selector":{"groupKind":{"kind":"A"}},"fields":["spec.a"]}`, many)+`]`),
		"fields of yield rules":        creates("", `,"yield":[`+repeat(`{"selector":{"groupKind":{"kind":"A"}},"fields":[`+strings.TrimSuffix(strings.Repeat(`"spec.a[name=\"x\"].b[c=1].d",`, 64), ",")+`]}`, 64)+`]`),
		"previous":                     creates("", `,"previous":[`+repeat(`{"name":"hostile-#"}`, many)+`]`),
		"label selectors":              creates("", `,"progressionProbes":[{"selector":{"labelSelector":{"matchExpressions":[`+repeat(`{"key":"a#","operator":"Like"}`, many)+`]}},"assertions":[{"cel":{"expression":"true"}}]}]`),
		"labels":                       creates(`,"labels":{`+repeat(`"a#":"b"`, many)+`}`, ""),
		"annotations":                  creates(`,"annotations":{`+repeat(`"a#":"b"`, many)+`}`, ""),
		"finalizers":                   creates(`,"finalizers":[`+repeat(`"a/#"`, many)+`]`, ""),
		"owners":                       creates(`,"ownerReferences":[`+repeat(`{"apiVersion":"v1","kind":"A","name":"a","uid":"#"}`, many)+`]`, ""),
		"managed fields":               creates(`,"managedFields":[`+repeat(`{"manager":"m#","operation":"Apply","apiVersion":"olm.operatorframework.io/v1alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:phases":{}}}}`, many)+`]`, ""),
		"one manifest":                 creates("", phases(fmt.Sprintf(small, `,"data":{"k":"`+strings.Repeat("x", mebibyte)+`"}`))),
		"one manifest of small values": creates("", phases(fmt.Sprintf(small, `,"x":[`+repeat("{}", many)+`]`))),
		"unknown fields":               creates("", `,`+repeat(`"x#":1`, many)),
		"last applied":                 creates(`,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"[`+strings.Repeat("{},", 340_000)+`1]"}`, ""),
		"no JSON":                      {Method: http.MethodPost, ContentType: asJSON, Body: strings.Repeat("[", mebibyte)},
	}
	for name, expression := range Compilations() {
		var assertions []string
		for length, i := 0, 0; i < v1alpha1.MaxAssertions && length+len(expression)+6 < v1alpha1.MaxExpressionsBytes; i++ {
			different := strings.Replace(expression, "1", fmt.Sprint(i+2), 1)
			if different == expression {
				different += "||" + fmt.Sprint(i+2) + "==1"
			}
			length += len(different)
			assertions = append(assertions, fmt.Sprintf(`{"cel":{"expression":%q}}`, different))
		}
		all["compiled: "+name] = creates("", probes(strings.Join(assertions, ","))+phases(repeat(padded, 4000)))
	}
	yaml := creates("", phases(repeat(padded, 4000)))
	yaml.ContentType, yaml.Body = asYAML, "{"+strings.Repeat("\n ", 10)+yaml.Body[1:]+"# yaml"
	all["4,000 objects in YAML"] = yaml
	return all
}

// Patches returns requests of a user who can only patch revisions.
func Patches(name string) map[string]Request {
	const many = 1 << 30
	patch := func(form, body string) Request {
		return Request{Method: http.MethodPatch, ContentType: form, Body: body, Name: name}
	}
	lists := map[string]string{
		"phases":     `{"spec":{"phases":[` + repeat(`{"name":"p#"}`, many) + `]}}`,
		"64 phases":  `{"spec":{"phases":[` + repeat(`{"name":"p#","objects":[`+strings.TrimSuffix(strings.Repeat(`{"apiVersion":"v1","kind":"ConfigMap","namespace":"default","name":"m","digest":"sha256:0"},`, 62), ",")+`]}`, 64) + `]}}`,
		"finalizers": `{"metadata":{"finalizers":[` + repeat(`"a/#"`, many) + `]}}`,
		"owners":     `{"metadata":{"ownerReferences":[` + repeat(`{"apiVersion":"v1","kind":"A","name":"a","uid":"#"}`, many) + `]}}`,
		"labels":     `{"metadata":{"labels":{` + repeat(`"a#":"b"`, many) + `}}}`,
		"conditions": `{"status":{"conditions":[` + repeat(`{"type":"A#","status":"True"}`, many) + `]}}`,
	}
	all := map[string]Request{
		"JSON patch: phases": patch(jsonPatch, `[`+repeat(`{"op":"add","path":"/spec/phases/-","value":{"name":"p#"}}`, 10_000)+`]`),
		"JSON patch: labels": patch(jsonPatch, `[`+repeat(`{"op":"add","path":"/metadata/labels/a#","value":"b"}`, 10_000)+`]`),
		"JSON patch: copies": patch(jsonPatch, `[`+repeat(`{"op":"copy","from":"/spec/phases/0","path":"/metadata/annotations/a#"}`, 10_000)+`]`),
		"JSON patch: tests":  patch(jsonPatch, `[`+repeat(`{"op":"test","path":"/spec/phases/0/name","value":"all"}`, 10_000)+`]`),
		"order":              patch(strategic, `{"spec":{"$setElementOrder/phases":[`+repeat(`{"name":"p#"}`, many)+`]}}`),
	}
	for what, body := range lists {
		all["merge: "+what], all["strategic: "+what] = patch(merge, body), patch(strategic, body)
		all["apply: "+what] = patch(apply, `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"`+name+`"},`+strings.TrimPrefix(body, "{"))
		if strings.HasPrefix(body, `{"metadata":{`) {
			all["apply: "+what] = patch(apply, strings.Replace(body, `{"metadata":{`, `{"apiVersion":"olm.operatorframework.io/v1alpha1","kind":"ClusterExtensionRevision","metadata":{"name":"`+name+`",`, 1))
		}
	}
	return all
}

// Names returns the keys of a map, sorted.
func Names[T any](all map[string]T) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
