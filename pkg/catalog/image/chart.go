package image

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	specs "github.com/opencontainers/image-spec/specs-go/v1"
)

// chart stores the archive of a chart unchanged. The caller that renders it unpacks it, with limits
// of memory and time. The configuration and the provenance file are not requested.
func (s *Store) chart(ctx context.Context, o *session, made *specs.Manifest, tree string) error {
	isArchive := func(of specs.Descriptor) bool { return of.MediaType == chartLayerType }
	at := slices.IndexFunc(made.Layers, isArchive)
	if at < 0 || slices.ContainsFunc(made.Layers[at+1:], isArchive) {
		return refuse("", "it is a Helm chart, but does not have exactly one layer of the media type %s", chartLayerType)
	}
	archive := made.Layers[at]
	if archive.Size > s.options.Limits.File {
		return about(refuse("", "the chart has %d bytes; a file may have at most %d", archive.Size, s.options.Limits.File), "", archive.Digest.String())
	}
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	err := s.retried(ctx, func() error { return o.save(ctx, archive, filepath.Join(tree, ChartFile)) })
	return about(err, "", archive.Digest.String())
}

func (o *session) save(ctx context.Context, of specs.Descriptor, name string) error {
	b, done, err := o.blob(ctx, of)
	if err != nil {
		return err
	}
	defer done()
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, b); err == nil {
		err = b.finish()
	}
	return errors.Join(err, f.Close())
}
