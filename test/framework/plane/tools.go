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

// Tools returns the folder of the control plane's programs: $PENSTOCK_TOOLS, or the output of
// hack/build-tools.sh in the checkout of the working directory. The first run of the script
// compiles for minutes. It writes its progress to progress.
func Tools(ctx context.Context, progress io.Writer) (string, error) {
	if dir := os.Getenv("PENSTOCK_TOOLS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
			return "", fmt.Errorf("looking for programs in $PENSTOCK_TOOLS: %w; run `make tools` or unset it", err)
		}
		return dir, nil
	}
	return prints(ctx, progress, "build-tools.sh")
}

// NodeTools returns the folder of a real node's programs, which hack/node-tools.sh builds: kubelet,
// kube-proxy, containerd and their dependencies. The first run takes minutes.
func NodeTools(ctx context.Context, progress io.Writer) (string, error) {
	return prints(ctx, progress, "node-tools.sh")
}

// prints returns the folder that a script in hack prints.
func prints(ctx context.Context, progress io.Writer, script string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(root, "hack", script))
	cmd.Stderr = progress
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("making programs by hack/%s: %w", script, err)
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
