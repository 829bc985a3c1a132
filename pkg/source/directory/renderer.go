package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/penstock-project/penstock/pkg/source"
)

// Renderer renders plain manifests in a folder of a file system, such as an image. The result has
// no package name and no version.
type Renderer struct {
	// Folder is the slash-separated path of the manifests; empty is the root.
	Folder string
	// MaxErrors has the same meaning as in Options.
	MaxErrors int
}

var _ source.Renderer = Renderer{}

// Render renders the manifests of the folder. Errors and warnings name files by their path from the
// root.
func (r Renderer) Render(ctx context.Context, fsys fs.FS) (source.Rendered, error) {
	folder := r.Folder
	if folder == "" {
		folder = "."
	}
	if info, err := fs.Stat(fsys, folder); err != nil || !info.IsDir() {
		return source.Rendered{}, fmt.Errorf("%s: is not a folder: the manifests are read from a folder", folder)
	}
	below, err := fs.Sub(fsys, folder)
	if err != nil {
		return source.Rendered{}, fmt.Errorf("reading %s: %w", folder, err)
	}
	var out source.Rendered
	out.Phases, err = Render(ctx, below, Options{MaxErrors: r.MaxErrors, Warn: func(one Error) {
		one.File = path.Join(folder, one.File)
		out.Warnings = append(out.Warnings, source.Warning(one))
	}})
	var all *Errors
	if errors.As(err, &all) {
		for _, one := range all.List {
			one.File = path.Join(folder, one.File)
		}
	}
	if err != nil {
		return source.Rendered{}, err
	}
	return out, nil
}
