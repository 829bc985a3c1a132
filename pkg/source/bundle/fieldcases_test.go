package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/source/bundle/config"
)

// fieldCases has bundles from user reports. It is not part of the repository.
const fieldCases = "../../../../shared/data/field-cases/olm"

func renderCase(t *testing.T, name string, options Options) (warnings int, err error) {
	t.Helper()
	dir := filepath.Join(fieldCases, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no shared data: %v", err)
	}
	options.InstallNamespace = "home"
	rendered, err := Renderer{options}.Render(t.Context(), os.DirFS(dir))
	return len(rendered.Warnings), err
}

// TestRequirementsAreNoDeadEnd: the error for a bundle that requires another package names the
// option that accepts it. With the option the bundle is rendered.
func TestRequirementsAreNoDeadEnd(t *testing.T) {
	for _, name := range []string{"24-dependency/v1", "24-dependency/gvk"} {
		if _, err := renderCase(t, name, Options{}); err == nil || !strings.HasSuffix(err.Error(), ": --accept-requirements") {
			t.Errorf("%s: %v; want the flag of penstock render", name, err)
		}
		if warnings, err := renderCase(t, name, Options{AcceptRequirements: true}); err != nil || warnings == 0 {
			t.Errorf("%s, accepted: %d warnings, %v", name, warnings, err)
		}
	}
}

// TestOwnNamespaceOnly: the error lists the namespaces that the operator can watch, including its
// own namespace.
func TestOwnNamespaceOnly(t *testing.T) {
	_, err := renderCase(t, "22-ownnamespace-only/v1", Options{})
	var wrong *config.Errors
	if !errors.As(err, &wrong) || !wrong.Modes.OwnNamespace || wrong.Modes.AllNamespaces || wrong.List[0].Path != "watchNamespace" {
		t.Fatalf("%v", err)
	}
	if _, err := renderCase(t, "22-ownnamespace-only/v1", Options{Config: []byte(`{"watchNamespace":"home"}`)}); err != nil {
		t.Errorf("configured: %v", err)
	}
}
