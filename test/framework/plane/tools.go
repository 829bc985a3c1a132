package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tools returns the folder of the control plane's programs: $PENSTOCK_TOOLS, or
// what hack/build-tools.sh of the checkout around the working directory prints.
// The first run of the script compiles for minutes and says so on progress.
func Tools(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv("PENSTOCK_TOOLS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
			return "", fmt.Errorf("looking for programs in $PENSTOCK_TOOLS: %w; run `make tools` or unset it", err)
		}
		return dir, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", "build-tools.sh"))
	cmd.Stderr = progress
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("building the control plane's programs by hack/build-tools.sh: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Root returns the top folder of the checkout around the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "build-tools.sh")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the checkout: no folder from here upwards holds hack/build-tools.sh")
		}
		dir = parent
	}
}
