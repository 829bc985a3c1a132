package pack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// TestRealManifests: the manifests of a real operator are stored as one small record, and read back
// unchanged.
func TestRealManifests(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "manifests", "cert-manager", "1.20.3")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no real manifests beside the repository: %v", err)
	}
	var objects []manifest.Object
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".yaml") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(data), "\n---\n") {
			body, err := yaml.YAMLToJSON([]byte(document))
			if err != nil {
				return err
			}
			o, err := digester().FromJSON(body)
			if err != nil {
				return err
			}
			objects = append(objects, o)
		}
		return nil
	})
	if err != nil || len(objects) < 40 {
		t.Fatalf("read %d manifests, error %v", len(objects), err)
	}
	client := storetest.Client(t)
	s := New(client, "/p", digester())
	if _, err := s.Put(t.Context(), objects); err != nil {
		t.Fatalf("put: %v", err)
	}
	mustHave(t, s, objects)
	var raw, stored int
	for _, o := range objects {
		raw += len(o.JSON)
	}
	keys := dump(t, client, "/p")
	for _, value := range keys {
		stored += len(value)
	}
	t.Logf("%d objects, %d bytes of JSON, %d bytes in %d keys", len(objects), raw, stored, len(keys))
	if len(keys) != 1 || stored > raw/8 {
		t.Errorf("%d bytes of JSON take %d bytes in %d keys, want an eighth in one", raw, stored, len(keys))
	}
}
