package values

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/manifest"
)

const password = "correct-horse"

// merged returns values of a Secret with the password, and of a ConfigMap.
func merged(t *testing.T, inline string) *Values {
	t.Helper()
	sources, err := Parse("[{kind: ConfigMap, name: settings}, {kind: Secret, name: db, key: password, targetPath: db.password}]")
	if err != nil {
		t.Fatal(err)
	}
	v, err := Merge(sources, [][]byte{[]byte("size: big\ndb: {host: a, password: public}"), []byte(password)}, []byte(inline))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestMerge: later sources win, and the inline configuration wins over all.
func TestMerge(t *testing.T) {
	for inline, want := range map[string]string{
		"":                           `{"db":{"host":"a","password":"correct-horse"},"size":"big"}`,
		`{"size":"small"}`:           `{"db":{"host":"a","password":"correct-horse"},"size":"small"}`,
		`{"db":{"password":null}}`:   `{"db":{"host":"a","password":null},"size":"big"}`,
		`{"db":"none","list":["a"]}`: `{"db":"none","list":["a"],"size":"big"}`,
	} {
		if got := string(merged(t, inline).JSON); got != want {
			t.Errorf("with %s it is %s, want %s", inline, got, want)
		}
	}
}

// TestRefusals: an error names the mistake, and contains no value.
func TestRefusals(t *testing.T) {
	for text, want := range map[string]string{
		"{": "it must be a list", "[]": "it has 0 sources",
		"[" + strings.Repeat("{kind: Secret, name: a},", 17) + "]": "it has 17 sources",
		"[{kind: Pod, name: a}]":                                   `kind is "Pod"`,
		"[{kind: Secret, name: A/b}]":                              `name is "A/b"`,
		"[{kind: Secret, name: a, key: ../b}]":                     "source 1: ",
		"[{kind: Secret, name: a, targetPath: a..b}]":              `targetPath is "a..b"`,
		"[{kind: Secret, name: a, optional: true}]":                "unknown field",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	secret := []Source{{Kind: Secret, Name: "db", Key: "values.yaml"}}
	for content, want := range map[string]string{
		password:                        "Secret db, key values.yaml: the value must be YAML",
		"a: " + password + ": b":        "the value must be YAML",
		"a: 1\na: " + password:          "the value must be YAML",
		strings.Repeat("a", MaxBytes+1): "more than",
	} {
		if _, err := Merge(secret, [][]byte{[]byte(content)}, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), password) {
			t.Errorf("%.40s: %v, want %s", content, err, want)
		}
	}
	if _, err := Merge(secret, [][]byte{[]byte("a: b")}, []byte(`["a"]`)); err == nil {
		t.Error("a list is configuration")
	}
}

// TestExposed: a value of a Secret is found wherever readers of an object see it, in each form.
func TestExposed(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(password))
	inFile := base64.StdEncoding.EncodeToString([]byte("host: a\npassword: " + password + "\n"))
	for object, field := range map[string]string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"` + password + `"}}`:                                                   "data.x",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"db://me:` + password + `@db"}}`:                                        "data.x",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"` + password + `":"x"}}`:                                                   "data.***",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"binaryData":{"x":"` + inFile + `"}}`:                                               "binaryData.x",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"` + password + `"}}}`:                                                 "metadata.labels.x",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + password + `"}}`:                                                                    "metadata.name",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","annotations":{"x":"` + encoded + `"}}}`:                                                "metadata.annotations.x",
		`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"args":["` + password + `"]}]}}}}`: "spec.template.spec.containers[0].args[0]",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"data":{"x":"` + encoded + `"},"stringData":{"y":"` + password + `"}}`:                 "",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":"big"}}`:                                                                "",
	} {
		parsed, err := manifest.Parse([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		err = merged(t, "").Exposed(parsed)
		if (err != nil) != (field != "") || err != nil && (!strings.Contains(err.Error(), "field "+field+" has the value of Secret db, key password, db.password") || strings.Contains(err.Error(), password)) {
			t.Errorf("%s: %v, want %s", object, err, field)
		}
	}
	// The author has published the value also outside of the Secret.
	parsed, err := manifest.Parse([]byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"x":%q}}`, password)))
	if err != nil {
		t.Fatal(err)
	}
	if err := merged(t, fmt.Sprintf(`{"shown":%q}`, password)).Exposed(parsed); err != nil {
		t.Error(err)
	}
}

// TestMask: no message contains a value or a part of one.
func TestMask(t *testing.T) {
	v := merged(t, "")
	for _, text := range []string{"fail: " + password, "at <" + base64.StdEncoding.EncodeToString([]byte(password)) + ">", "cut correct-hor"} {
		if got := v.Mask(text); strings.Contains(got, "correct-hor") || strings.Contains(got, "Y29ycmVjd") || !strings.Contains(got, "***") {
			t.Errorf("%s becomes %s", text, got)
		}
	}
	if got := (*Values)(nil).Mask("a"); got != "a" {
		t.Errorf("without values a becomes %s", got)
	}
}
