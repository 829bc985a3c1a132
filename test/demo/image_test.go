//go:build integration

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/hack/release/layout"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/pod"
)

// TestImage runs the first acts with the program of an image. The program uses only the image's
// files, read-only, as a user that the image does not know. It is deployed by artifacts/deploy,
// with the rights of its ServiceAccount.
//
// $PENSTOCK_IMAGE names the layout to test; make test-slice N=image sets it, and runs more acts.
// Otherwise the image is built from the program that all tests use.
func TestImage(t *testing.T) {
	if err := pod.Namespaces(); err != nil {
		if os.Getenv("PENSTOCK_NAMESPACES") == "required" {
			t.Fatal(err)
		}
		t.Skipf("%v; PENSTOCK_NAMESPACES=required makes this a failure", err)
	}
	t.Parallel()
	program := penstock.Build(t).Path()
	dir, acts := os.Getenv("PENSTOCK_IMAGE"), 7
	if dir == "" {
		// Later acts need the plugin, which tests do not build.
		dir, acts = imageOf(t, program), 3
	}
	s, err := parseSettings(func(name string) string { return map[string]string{"IMAGE": dir, "PENSTOCK": program}[name] }, filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	s.Acts = acts
	var out bytes.Buffer
	if err := newDemo(s, &screen{out: &out}).run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
	if !strings.Contains(out.String(), "from the image's own files") {
		t.Errorf("the image was not used:\n%s", out.String())
	}
}

func imageOf(t *testing.T, program string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "image")
	_, err := layout.Write(dir, []layout.Program{{OS: "linux", Architecture: runtime.GOARCH, Path: program, BOM: []byte("{}")}},
		layout.Options{Version: "devel", Created: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
