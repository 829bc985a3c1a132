package directory

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// sharedData has manifests of real operators, beside the repository.
const sharedData = "../../../../shared/data"

// What real operators ship is taken as it is: nothing is mended, warned of or refused.
func TestRealManifests(t *testing.T) {
	tried := 0
	for _, kind := range []string{"manifests", "bundles"} {
		found, err := filepath.Glob(filepath.Join(sharedData, kind, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range found {
			info, err := os.Stat(dir)
			if err != nil || !info.IsDir() {
				continue
			}
			tried++
			t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir), func(t *testing.T) {
				objects, err := Read(context.Background(), manifestsOf(dir), Options{Warn: func(one Error) { t.Errorf("warning: %v", one.Error()) }})
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				t.Logf("%d objects", len(objects))
			})
		}
	}
	for _, pattern := range []string{"crds/*.yaml", "registryv1-golden/expected-manifests/**/*.yaml", "registryv1-golden/expected-manifests/*/*/*.yaml", "registryv1-golden/rendered-by-upstream/**/*.yaml", "registryv1-golden/rendered-by-upstream/*/*/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(sharedData, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			tried++
			t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
				content, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer content.Close()
				_, err = RenderStream(context.Background(), content, filepath.Base(file), Options{Warn: func(one Error) { t.Errorf("warning: %v", one.Error()) }})
				if err != nil {
					t.Errorf("refused: %v", err)
				}
			})
		}
	}
	if tried == 0 {
		t.Skipf("there are no manifests in %s", sharedData)
	}
}

// manifestsOf is a folder, or that of a bundle with its manifests.
func manifestsOf(dir string) fs.FS {
	if inner := filepath.Join(dir, "manifests"); isDir(inner) {
		return os.DirFS(inner)
	}
	return os.DirFS(dir)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
