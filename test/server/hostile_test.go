//go:build integration

package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// hostile: the largest possible revision is read through the aggregator too. (The package of each
// read tests that read alone.)
func (s secrecy) hostile() {
	config := s.Config()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	const group = "/apis/olm.operatorframework.io/v1alpha1/"
	do := func(method, path string, body []byte) (int, string) {
		s.t.Helper()
		request, err := http.NewRequestWithContext(s.t.Context(), method, config.Host+group+path, bytes.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := client.Do(request)
		if err != nil {
			s.t.Fatalf("%s: %v", path, err)
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			s.t.Fatalf("%s: %v", path, err)
		}
		return response.StatusCode, string(content)
	}
	for i, mark := range []string{"one", "two"} {
		number := i + 1
		body, err := json.Marshal(hostileRevision(number, mark))
		if err != nil {
			s.t.Fatal(err)
		}
		if code, answer := do(http.MethodPost, "clusterextensionrevisions", body); code != http.StatusCreated {
			s.t.Fatalf("creating hostile-%d: %d: %s", number, code, answer[:min(len(answer), 1000)])
		}
	}
	const mib = 1 << 20
	for path, tc := range map[string]struct {
		most int
		says string
	}{
		"clusterextensionrevisions/hostile-2/diff":      {24 * mib, `"truncated":{`},
		"revisiondiffs/hostile-1..hostile-2":            {24 * mib, `"truncated":{`},
		"clusterextensionrevisions/hostile-2/history":   {mib, `"objects":4000`},
		"clusterextensionrevisions/hostile-2/manifests": {v1alpha1.MaxManifestBytes + mib, `"name":"object-3999"`},
	} {
		code, answer := do(http.MethodGet, path, nil)
		if code != http.StatusOK || len(answer) > tc.most || !strings.Contains(answer, tc.says) {
			s.t.Errorf("%s: status %d, %d bytes, want at most %d that have %s: %s", path, code, len(answer), tc.most, tc.says, answer[:min(len(answer), 1000)])
		}
	}
}

func hostileRevision(number int, mark string) map[string]any {
	type object = map[string]any
	phases := make([]any, v1alpha1.MaxPhases)
	for p := range phases {
		phases[p] = object{"name": fmt.Sprintf("phase-%d", p), "objects": []any{}}
	}
	for i := range v1alpha1.MaxObjects {
		data := object{"text": strings.Repeat(mark+"\n", 60)}
		if i == 0 {
			data = object{"line": strings.Repeat("x", 1<<20) + mark}
		}
		phase := phases[i*v1alpha1.MaxPhases/v1alpha1.MaxObjects].(object)
		phase["objects"] = append(phase["objects"].([]any), object{"object": object{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": fmt.Sprintf("object-%d", i), "namespace": "default"}, "data": data,
		}})
	}
	return object{
		"apiVersion": "olm.operatorframework.io/v1alpha1", "kind": "ClusterExtensionRevision",
		"metadata": object{"name": fmt.Sprintf("hostile-%d", number)},
		// The revision is paused, so nothing is rolled out.
		"spec": object{"revision": number, "lifecycleState": "Paused", "phases": phases},
	}
}
