package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxBytes bounds the program, which users download. Helm's engine and the libraries for pulling
// images and for adoption are 18 MiB of it.
const maxBytes = 64 << 20

// TestProgram builds the plugin as it ships, and calls it by both of its names.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "kubectl-penstock")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-s -w -X main.version=v1.2.3", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the plugin: %v\n%s", err, out)
	}
	info, err := os.Stat(program)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBytes {
		t.Errorf("the plugin has %d bytes, want at most %d", info.Size(), maxBytes)
	}
	says := func(want string, name string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, name), args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s %s: %v, %q is not in: %s", name, strings.Join(args, " "), err, want, out)
		}
	}
	says("kubectl-penstock v1.2.3", "kubectl-penstock", "version", "--client")
	says("kubectl_complete-penstock", "kubectl-penstock", "completion", "install")
	says("rollback\tGo back", "kubectl_complete-penstock", "rollb")
}
