package client

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestNoKubeconfig: without a kubeconfig, the error lists the places where it was searched.
func TestNoKubeconfig(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	t.Setenv("KUBECONFIG", path)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := (&Flags{}).Config()
	if err == nil || !strings.Contains(err.Error(), "set $KUBECONFIG or --kubeconfig") || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "KUBERNETES_MASTER") {
		t.Errorf("it says: %v", err)
	}
}
