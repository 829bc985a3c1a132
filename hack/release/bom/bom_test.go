package bom_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"

	"github.com/penstock-project/penstock/hack/release/bom"
)

func TestOf(t *testing.T) {
	// go test caches a result while the files that the test itself has opened are unchanged.
	if _, err := os.Stat("../../../go.mod"); err != nil {
		t.Fatal(err)
	}
	// The linker lists modules in programs, but not in test binaries.
	path := filepath.Join(t.TempDir(), "release")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", path, "..").CombinedOutput(); err != nil {
		t.Fatalf("building a program: %v\n%s", err, out)
	}
	program := bom.Program{Path: path, Name: "penstock", Version: "v1.2.3", Created: time.Unix(1_700_000_000, 0)}
	made, err := bom.Of(program)
	if err != nil {
		t.Fatal(err)
	}
	again, err := bom.Of(program)
	if err != nil || !bytes.Equal(made, again) {
		t.Errorf("the second time it is another one: %v", err)
	}
	var read cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(made), cyclonedx.BOMFileFormatJSON).Decode(&read); err != nil {
		t.Fatal(err)
	}
	if read.SpecVersion != cyclonedx.SpecVersion1_6 || read.Metadata.Component.Name != "penstock" || read.Metadata.Component.Version != "v1.2.3" {
		t.Errorf("it is of %+v", read.Metadata.Component)
	}
	found := map[string]cyclonedx.Component{}
	for _, component := range *read.Components {
		if found[component.BOMRef].BOMRef != "" {
			t.Errorf("%s is there twice", component.BOMRef)
		}
		found[component.Name] = component
	}
	library := found["github.com/CycloneDX/cyclonedx-go"]
	if !strings.HasPrefix(library.PackageURL, "pkg:golang/github.com/CycloneDX/cyclonedx-go@v") || library.Hashes == nil {
		t.Errorf("a library is %+v", library)
	}
	if found["std"].Version == "" {
		t.Error("Go's own library is missing")
	}
}

func TestNotAProgram(t *testing.T) {
	if _, err := bom.Of(bom.Program{Path: "bom_test.go"}); err == nil || !strings.Contains(err.Error(), "bom_test.go") {
		t.Errorf("a file without modules: %v", err)
	}
}
