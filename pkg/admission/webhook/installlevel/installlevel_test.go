package installlevel

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
)

func object(annotations string) *webhook.Object {
	o := &webhook.Object{}
	if err := json.Unmarshal([]byte(`{"metadata":{"annotations":`+annotations+`}}`), o); err != nil {
		panic(err)
	}
	return o
}

func level(value string) string {
	return `{"release.openshift.io/create-only":"true","release.openshift.io/install-level":` + value + `}`
}

func TestJudge(t *testing.T) {
	going := object(level(`"7"`))
	now := "2026-11-21T00:00:00Z"
	going.Metadata.DeletionTimestamp = &now
	type verdict struct {
		reason    string
		operation admissionv1.Operation
		old, new  *webhook.Object
		says      string
	}
	cases := map[string]verdict{
		"None":          {"nothing to look at", admissionv1.Create, nil, object(`{}`), ""},
		"Null":          {"no annotations", admissionv1.Create, nil, object(`null`), ""},
		"Zero":          {"a level", admissionv1.Create, nil, object(level(`"0"`)), ""},
		"One":           {"a level", admissionv1.Create, nil, object(level(`"1"`)), ""},
		"Alone":         {"it is not create-only", admissionv1.Create, nil, object(`{"release.openshift.io/install-level":"1"}`), "needs release.openshift.io/create-only"},
		"NotCreateOnly": {"it is not create-only", admissionv1.Create, nil, object(strings.Replace(level(`"1"`), `"true"`, `"True"`, 1)), "needs release.openshift.io/create-only"},
		"Set":           {"on an update", admissionv1.Update, object(`{}`), object(level(`"2"`)), `is "2", want "0" or "1"`},
		"Changed":       {"on an update", admissionv1.Update, object(level(`"1"`)), object(level(`"2"`)), `is "2", want "0" or "1"`},
		"WrongBefore":   {"an object must not become unwritable", admissionv1.Update, object(level(`"2"`)), object(level(`"2"`)), ""},
		"Removed":       {"it is repaired", admissionv1.Update, object(level(`"2"`)), object(`{}`), ""},
		"Going":         {"finalizers are removed", admissionv1.Update, object(`{}`), going, ""},
		"Delete":        {"never", admissionv1.Delete, object(level(`"2"`)), nil, ""},
		"OtherKey":      {"another name is none", admissionv1.Create, nil, object(`{"release.openshift.io/Install-Level":"9"}`), ""},
	}
	for _, value := range []string{`""`, `" 1"`, `"1 "`, `"1\n"`, `"01"`, `"+1"`, `"-1"`, `"1.0"`, `"1e0"`, `"true"`, `"2"`, `"9999999999999999999"`, `"１"`, `1`, `true`, `null`, `{}`, `["1"]`} {
		cases[value] = verdict{"neither 0 nor 1", admissionv1.Create, nil, object(level(value)), `annotation release.openshift.io/install-level is ` + value + `, want "0" or "1"`}
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judge(webhook.Review{Operation: tc.operation, Group: "config.openshift.io", Kind: "Proxy", Name: "cluster", Old: tc.old, Object: tc.new})
			if (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.says)
			}
		})
	}
}

func TestParseResource(t *testing.T) {
	for text, ok := range map[string]bool{
		"config.openshift.io/*": true, "/configmaps": true, "apps/deployments": true,
		"": false, "configmaps": false, "a/b/c": false, "*/*": false, "a/": false, "olm.operatorframework.io/*": false,
	} {
		if _, err := ParseResource(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}
