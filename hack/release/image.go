package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock-project/penstock/hack/release/bom"
	"github.com/penstock-project/penstock/hack/release/layout"
)

func imagePlatforms() []platform {
	return []platform{{"linux", "amd64"}, {"linux", "arm64"}}
}

// image builds the server for each platform, and replaces the layout. It returns the digest.
// Programs and their bills of materials stay in the folder scratch.
func (s sources) image(ctx context.Context, dir, scratch string, platforms []platform) (string, error) {
	var programs []layout.Program
	for _, p := range platforms {
		path, err := s.build(ctx, "penstock", p, scratch)
		if err != nil {
			return "", err
		}
		bill, err := bom.Of(bom.Program{Path: path, Name: "penstock", Version: s.version, Created: s.created})
		if err != nil {
			return "", err
		}
		programs = append(programs, layout.Program{OS: p.system, Architecture: p.architecture, Path: path, BOM: bill})
	}
	if err := vacate(dir, "oci-layout"); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the image: %w", err)
	}
	digest, err := layout.Write(dir, programs, layout.Options{Version: s.version, Revision: s.revision, Created: s.created})
	if err != nil {
		return "", err
	}
	return digest.String(), nil
}
