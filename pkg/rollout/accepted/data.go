package accepted

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/util/validation"
)

// texts are the data of a ConfigMap. How much there is of it, the size of the manifest bounds.
func texts(j *judgement, path string, _, after any) { checkKeys(j, path, after) }

// octets are data in base64.
func octets(j *judgement, path string, _, after any) {
	for _, value := range checkKeys(j, path, after) {
		if _, err := base64.StdEncoding.DecodeString(value); err != nil {
			j.unknown(path, "a value is no base64")
		}
	}
}

func checkKeys(j *judgement, path string, after any) map[string]string {
	data, ok := stringsOf(after)
	if !ok {
		j.unknown(path, "is no map of strings")
		return nil
	}
	for key := range data {
		if len(validation.IsConfigMapKey(key)) > 0 {
			j.unknown(path, "the server would refuse a key")
		}
	}
	return data
}

// mutable is of kinds whose content may be made immutable.
func mutable(content ...string) func(j *judgement, path string, before, after map[string]any) {
	return func(j *judgement, _ string, before, after map[string]any) {
		for _, name := range content {
			if !same(member(before, name), member(after, name)) && member(after, "immutable") != (absent{}) {
				j.unknown(name, "immutable is set")
			}
		}
	}
}

// configMap judges data and binaryData together: a key may be in one of them only.
func configMap(j *judgement, path string, before, after map[string]any) {
	mutable("data", "binaryData")(j, path, before, after)
	data, _ := membersOf(member(after, "data"))
	binary, _ := membersOf(member(after, "binaryData"))
	for key := range binary {
		if _, both := data[key]; both {
			j.unknown("binaryData", "has a key of data")
		}
	}
}

// opaque judges Secrets: the content of those with a type has a form, and stringData is data
// by another name.
func opaque(j *judgement, path string, before, after map[string]any) {
	if same(member(before, "data"), member(after, "data")) {
		return
	}
	if kind := member(after, "type"); kind != (absent{}) && kind != "Opaque" {
		j.unknown("data", "the type of the Secret says what is in it")
	}
	if member(after, "stringData") != (absent{}) {
		j.unknown("data", "stringData is set too")
	}
	mutable("data")(j, path, before, after)
}

// boolean is a field that is either.
func boolean(j *judgement, path string, _, after any) {
	if _, is := after.(bool); !is {
		j.unknown(path, "is no boolean")
	}
}
