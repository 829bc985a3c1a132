//go:build integration

package smoke_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-project/penstock/test/framework/plugin"
)

// deploy: the plugin turns a folder of manifests into a revision. The user reviews it first.
// Nothing is stored before the user answers yes.
func deploy(s scenario) {
	folder := s.t.TempDir()
	write := func(version string, more ...string) {
		manifests := fmt.Sprintf("%s\n---\n%s\n", s.configMap("settings", "version="+version), s.deployment("web", "example.com/web:"+version))
		for _, one := range more {
			manifests += "---\n" + one + "\n"
		}
		if err := os.WriteFile(filepath.Join(folder, "all.yaml"), []byte(manifests), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	write("v1.0.0", s.configMap("legacy", "x=1").String())
	s.Says(s.runs(2, "deploy "+folder+" --name deploy"), "--yes", "--dry-run")
	s.Says(s.runs(1, "deploy "+folder+" --name deploy --dry-run"), "nothing → deploy-1: 3 added")
	s.Says(s.typesAs(plugin.User{Answer: "n"}, 1, "deploy "+folder+" --name deploy"), "Roll out deploy-1? [y/N]", "nothing was stored or rolled out")
	s.Absent("cer/deploy-1")
	s.Says(s.types(0, "deploy "+folder+" --name deploy --version v1.0.0"), "✓ deploy-1 v1.0.0: Active, 3 of 3 objects available")
	s.Says(s.types(0, "deploy "+folder+" --name deploy --version v1.0.0"), "nothing changes: deploy-1 has that content already")

	write("v1.1.0")
	s.Says(s.types(0, "deploy "+folder+" --name deploy --version v1.1.0"), "deploy-1 → deploy-2: 0 added, 2 changed, 1 removed, 0 unchanged",
		"! ConfigMap deploy/legacy: will be deleted", "example.com/web:v1.0.0 -> example.com/web:v1.1.0", "Roll out deploy-2, and delete the 1 removed? [y/N]",
		"✓ deploy-2 v1.1.0: Active, 2 of 2 objects available")
	s.Gone("configmap/legacy")
	s.Says(s.types(0, "status deploy"), "✓ deploy-2 v1.1.0", "✓ deploy")
	s.Says(s.types(0, "tree deploy"), "✓ Deployment.apps deploy/web: Available", "✓ Pod web-")
}
