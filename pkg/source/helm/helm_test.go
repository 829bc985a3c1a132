package helm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// stored encodes the text as Helm does: base64 of JSON, compressed or, as by Helm 2, uncompressed.
func stored(t *testing.T, text string, compressed bool) []byte {
	t.Helper()
	raw := []byte(text)
	if compressed {
		var out bytes.Buffer
		w := gzip.NewWriter(&out)
		if _, err := w.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		raw = out.Bytes()
	}
	return []byte(base64.StdEncoding.EncodeToString(raw))
}

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		data    []byte
		version int
		refused string
	}{
		"compressed":   {data: stored(t, `{"name":"shop","version":7,"info":{"last_deployed":"2026-01-02T03:04:05.678+02:00","status":"deployed"},"unknown":1}`, true), version: 7},
		"uncompressed": {data: stored(t, `{"name":"shop","version":1}`, false), version: 1},
		"no base64":    {data: []byte("{}"), refused: "reading a Helm release: illegal base64"},
		"no JSON":      {data: stored(t, `x`, true), refused: "reading a Helm release: invalid character"},
		"no release":   {data: stored(t, `{}`, true), refused: "it has no name or no number"},
		"cut off":      {data: []byte(base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 0x08, 0})), refused: "unpacking a Helm release"},
	} {
		t.Run(name, func(t *testing.T) {
			release, err := Decode(tc.data)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
				return
			}
			if err != nil || release.Version != tc.version {
				t.Errorf("got %+v, %v", release, err)
			}
		})
	}
}

func history(statuses ...string) []Release {
	var all []Release
	for i, status := range statuses {
		all = append(all, Release{Name: "shop", Version: i + 1, Info: Info{Status: status}})
	}
	return all
}

func TestChoose(t *testing.T) {
	for name, tc := range map[string]struct {
		reason           string
		all              []Release
		deployed, failed int
		older            []int
		refused          string
	}{
		"one":              {all: history("deployed"), deployed: 1},
		"seven":            {reason: "five are kept", all: history("superseded", "superseded", "superseded", "superseded", "superseded", "superseded", "deployed"), deployed: 7, older: []int{6, 5, 4, 3}},
		"failed before":    {reason: "it is part of the history", all: history("superseded", "failed", "deployed"), deployed: 3, older: []int{2, 1}},
		"failed after":     {reason: "the cluster may have some of it", all: history("superseded", "deployed", "failed", "failed"), deployed: 2, older: []int{1}, failed: 4},
		"two deployed":     {reason: "the newer one counts, as for Helm", all: history("deployed", "deployed"), deployed: 2, older: []int{1}},
		"pending":          {all: history("deployed", "pending-upgrade"), refused: "revision 2 is pending-upgrade: Helm is at work"},
		"uninstalled":      {all: history("superseded", "uninstalled"), refused: "revision 2 is uninstalled"},
		"being removed":    {all: history("uninstalling"), refused: "revision 1 is uninstalling"},
		"never deployed":   {all: history("failed"), refused: "no revision is deployed; the newest one, 1, is failed"},
		"only superseded":  {all: history("superseded"), refused: "no revision is deployed"},
		"nothing to adopt": {refused: "no such release"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Choose(tc.all)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v, want %q", err, tc.refused)
				}
				return
			}
			var older []int
			for _, one := range got.Older {
				older = append(older, one.Version)
			}
			failed := 0
			if got.Failed != nil {
				failed = got.Failed.Version
			}
			if err != nil || got.Deployed.Version != tc.deployed || failed != tc.failed || !cmp.Equal(older, tc.older) || got.Highest != len(tc.all) {
				t.Errorf("%s: got %d, older %v, failed %d, highest %d, %v", tc.reason, got.Deployed.Version, older, failed, got.Highest, err)
			}
		})
	}
}

// served is a cluster that serves some kinds.
func served(kind schema.GroupVersionKind) (inNamespace, known bool, err error) {
	switch kind.Kind {
	case "ConfigMap", "Deployment":
		return true, true, nil
	case "ClusterRole":
		return false, true, nil
	}
	return false, false, nil
}

func TestRender(t *testing.T) {
	release := Release{
		Name: "shop", Namespace: "market", Version: 3,
		Manifest: `---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app.kubernetes.io/managed-by: me, app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: elsewhere, annotations: {helm.sh/resource-policy: keep}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: c, namespace: ignored}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: d}
---
apiVersion: gone.example.com/v1
kind: Thing
metadata: {name: e}
`,
		Hooks: []Hook{
			{Name: "t", Kind: "Pod", Events: []string{"test"}},
			{Name: "migrate", Kind: "Job", Events: []string{"pre-upgrade", "pre-install"}},
		},
	}
	release.Chart.Files = append(release.Chart.Files, struct {
		Name string `json:"name"`
	}{"crds/x.yaml"})
	rendered, err := release.Render(t.Context(), func(kind schema.GroupVersionKind) (bool, bool, error) {
		if kind.Kind == "CustomResourceDefinition" {
			return false, true, nil
		}
		return served(kind)
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, phase := range rendered.Phases {
		for _, object := range phase.Objects {
			got = append(got, phase.Name+": "+object.ID.String())
			for _, mark := range []string{`"app.kubernetes.io/managed-by":"Helm"`, `"meta.helm.sh/release-name":"shop"`, `"meta.helm.sh/release-namespace":"market"`} {
				if !bytes.Contains(object.JSON, []byte(mark)) {
					t.Errorf("%s lacks %s: %s", object.ID, mark, object.JSON)
				}
			}
			if keeps := bytes.Contains(object.JSON, []byte(`"penstock.dev/teardown-policy":"Orphan"`)); keeps != (object.Name == "b") {
				t.Errorf("%s is kept: %t", object.ID, keeps)
			}
		}
	}
	want := []string{
		"configuration: ConfigMap elsewhere/b", "configuration: ConfigMap market/a", "crds: CustomResourceDefinition.apiextensions.k8s.io lamps.example.com",
		"roles: ClusterRole.rbac.authorization.k8s.io c", "infrastructure: Thing.gone.example.com market/e", "publish: Lamp.example.com d",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	var warnings []string
	for _, warning := range rendered.Warnings {
		warnings = append(warnings, warning.String())
	}
	for i, part := range []string{"test hooks are left out: 1", "stay with Helm: Job migrate (pre-upgrade, pre-install)", "1 file of the folder crds"} {
		if len(warnings) <= i || !strings.Contains(warnings[i], part) || !strings.HasPrefix(warnings[i], "shop.v3: ") {
			t.Errorf("warning %d of %q does not say %q", i, warnings, part)
		}
	}
}
