package rollout

import (
	"testing"
)

func TestMark(t *testing.T) {
	marks := map[string]map[string]string{
		"labels":      {"penstock.dev/chain": "argocd"},
		"annotations": {"penstock.dev/applied": "sha256:1"},
	}
	const marked = `"annotations":{"penstock.dev/applied":"sha256:1"},"labels":{"penstock.dev/chain":"argocd"}`
	cases := map[string]struct {
		reason, raw, want string
	}{
		"no labels": {"both maps are made", `{"kind":"A","metadata":{"name":"x"}}`, `{"kind":"A","metadata":{` + marked + `,"name":"x"}}`},
		"labels":    {"others stay", `{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"annotations":{"penstock.dev/applied":"sha256:1"},"labels":{"a":"b","penstock.dev/chain":"argocd"}}}`},
		"forged":    {"ours win over what a manifest says", `{"metadata":{"labels":{"penstock.dev/chain":"flux"},"annotations":{"penstock.dev/applied":"x"}}}`, `{"metadata":{` + marked + `}}`},
		"null maps": {"null is no map", `{"metadata":{"labels":null}}`, `{"metadata":{` + marked + `}}`},
		"numbers":   {"the content is not read, so not a digit changes", `{"metadata":{},"spec":{"big":12345678901234567890,"float":1.0}}`, `{"metadata":{` + marked + `},"spec":{"big":12345678901234567890,"float":1.0}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := mark([]byte(tc.raw), marks)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("%s:\n got %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
	for name, raw := range map[string]string{
		"no JSON": `{`, "a list": `[]`, "metadata is text": `{"metadata":"x"}`, "no metadata": `{}`, "null": `{"metadata":null}`,
		"labels are a list": `{"metadata":{"labels":[]}}`, "a label is a number": `{"metadata":{"labels":{"a":1}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := mark([]byte(raw), marks); err == nil {
				t.Errorf("got %s", got)
			}
		})
	}
}
