package fences

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestNodeTools: kubelet and kube-proxy of a real node have the version of the default control
// plane. They are pinned in a module of their own, so that only a real node builds them.
func TestNodeTools(t *testing.T) {
	find := func(file, expression string) string {
		content, err := os.ReadFile(filepath.Join("..", "hack", file))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(expression).FindSubmatch(content)
		if found == nil {
			t.Fatalf("hack/%s has nothing that matches %s", file, expression)
		}
		return string(found[1])
	}
	const kubernetes = `k8s\.io/kubernetes (v[0-9.]+)`
	want := find(filepath.Join("tools", find("build-tools.sh", `(?m)^default=(.+)$`), "go.mod"), kubernetes)
	if got := find("tools/node/go.mod", kubernetes); got != want {
		t.Errorf("hack/tools/node pins Kubernetes %s, the default control plane is %s: change it and run go mod tidy there", got, want)
	}
}
