package extensions

import (
	"strings"
	"testing"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
)

// TestInstalledAlready: what earlier revisions of the same name have is taken over, and what is
// there under another name keeps it.
func TestInstalledAlready(t *testing.T) {
	there := catalogv1alpha1.InstalledVersion{Extension: "buoy", Version: "1.0.0"}
	if got := installedAlready(there, "buoy"); !strings.Contains(got, "takes their objects over") || strings.Contains(got, "refused") {
		t.Errorf("%q", got)
	}
	if got := installedAlready(there, "other"); !strings.Contains(got, "as buoy") || !strings.Contains(got, "refused") {
		t.Errorf("%q", got)
	}
}
