package fences

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	utilversion "k8s.io/apimachinery/pkg/util/version"
)

const kubernetes = "k8s.io/kubernetes"

// TestToolModules: the control plane with the minor version of Penstock's libraries has Penstock's
// module versions. Go compiles a package once for both only if the module, its version and all
// dependencies are equal, without replacements. That is true for 1,300 packages.
func TestToolModules(t *testing.T) {
	ours := moduleOf(t, "..")
	folder := fmt.Sprintf("../hack/tools/v1.%d", utilversion.MustParseSemantic(ours.versions()["k8s.io/apiserver"]).Minor())
	tools := moduleOf(t, folder)
	// A module that few packages of the control plane need may differ.
	few := map[string]string{"github.com/spf13/cast": "kwok alone has it, for the functions of templates"}
	for path, version := range tools.versions() {
		if want := ours.versions()[path]; want != "" && want != version && few[path] == "" {
			t.Errorf("%s is %s in go.mod and %s in %s: raise the older one with go get, and run go mod tidy", path, want, version, folder)
		}
	}
	for _, replacement := range tools.Replace {
		if replacement.Old.Version != "v0.0.0" {
			t.Errorf("%s replaces %s %s: replace nothing but the placeholder v0.0.0, and require the version", folder, replacement.Old.Path, replacement.Old.Version)
		}
	}
	for path, version := range tools.versions() {
		if version == "v0.0.0" {
			t.Errorf("%s requires the placeholder of %s: require its version", folder, path)
		}
	}
}

// TestNodeTools: kubelet and kube-proxy of a real node are pinned in a separate module, so that
// only a real node builds them. Their versions may differ from the default control plane within
// Kubernetes' support: nodes are at most three minors older.
func TestNodeTools(t *testing.T) {
	minor := func(folder string) uint {
		return utilversion.MustParseSemantic(moduleOf(t, folder).versions()[kubernetes]).Minor()
	}
	node, plane := minor("../hack/tools/node"), minor(defaultTools(t))
	if node > plane || node+3 < plane {
		t.Errorf("hack/tools/node pins Kubernetes 1.%d, the default control plane is 1.%d: nodes are at most three minors older", node, plane)
	}
}

// TestHosts: each tested minor of the host has its slice. The default minor may have none.
func TestHosts(t *testing.T) {
	folders, err := filepath.Glob("../hack/tools/v1.*")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, folder := range folders {
		want[filepath.Base(folder)] = folder == defaultTools(t)
	}
	for _, found := range regexp.MustCompile(`(?m)^(?:slices=')?(v1\.[0-9]+) `).FindAllStringSubmatch(contentOfFile(t, "../hack/test-slice.sh"), -1) {
		if _, pinned := want[found[1]]; !pinned {
			t.Errorf("hack/test-slice.sh has a slice for the host %s, and hack/tools does not pin it", found[1])
		}
		want[found[1]] = true
	}
	for host, has := range want {
		if !has {
			t.Errorf("hack/tools pins the host %s, and hack/test-slice.sh has no slice for it", host)
		}
	}
}

// defaultTools returns the folder of the module that pins the default control plane.
func defaultTools(t *testing.T) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^default=(.+)$`).FindStringSubmatch(contentOfFile(t, "../hack/build-tools.sh"))
	if found == nil {
		t.Fatal("hack/build-tools.sh names no default version")
	}
	return filepath.Join("..", "hack", "tools", found[1])
}

func contentOfFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// pinned is the content of a go.mod. A tidy go.mod names each module with a compiled package, in
// its compiled version.
type pinned struct {
	Require []struct{ Path, Version string }
	Replace []struct {
		Old struct{ Path, Version string }
	}
}

func (m pinned) versions() map[string]string {
	all := make(map[string]string, len(m.Require))
	for _, required := range m.Require {
		all[required.Path] = required.Version
	}
	return all
}

func moduleOf(t *testing.T, folder string) (m pinned) {
	t.Helper()
	encoded, err := exec.Command("go", "mod", "edit", "-json", filepath.Join(folder, "go.mod")).Output()
	if err != nil {
		t.Fatalf("reading go.mod of %s: %v", folder, err)
	}
	if err := json.Unmarshal(encoded, &m); err != nil {
		t.Fatalf("reading go.mod of %s: %v", folder, err)
	}
	return m
}
