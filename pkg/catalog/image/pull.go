package image

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/penstock-project/penstock/pkg/signer"
)

func (s *Store) retried(ctx context.Context, do func() error) error {
	backoff := s.options.Backoff
	for {
		err := do()
		var o *outage
		if !errors.As(err, &o) || ctx.Err() != nil || backoff.Steps <= 1 {
			return err
		}
		select {
		case <-s.options.Clock.After(backoff.Step()):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

// pull pulls an image: 1. its manifest and labels, 2. its checks, 3. the folders to keep, 4. its
// layers, into a temporary folder, 5. the rename to its final name.
func (s *Store) pull(ctx context.Context, o *session, p *pulling, named reference.Named, request Request, check string) (*Image, error) {
	if err := s.places.Take(ctx, request.User, 1); err != nil {
		return nil, err
	}
	defer s.places.Return(request.User, 1)
	asked := request.Reference
	made, config, signed, err := s.describe(ctx, o)
	if err != nil {
		return nil, about(err, asked, "")
	}
	r := record{Digest: o.digest.String(), Kind: Chart, Root: "."}
	r.check(check, signed)
	var keep []string
	if !isChart(made) {
		if r.Kind, keep, r.Root, err = contents(config.Config.Labels, s.options.Limits); err != nil {
			return nil, about(err, asked, "")
		}
		if len(config.RootFS.DiffIDs) != len(made.Layers) {
			return nil, about(refuse("", "its manifest has %d layers, and its configuration %d", len(made.Layers), len(config.RootFS.DiffIDs)), asked, "")
		}
	}
	folder, err := os.MkdirTemp(s.root, pullPrefix+p.name+"-")
	if err != nil {
		return nil, fmt.Errorf("pulling image %s: %w", asked, err)
	}
	defer os.RemoveAll(folder)
	tree := filepath.Join(folder, treeDir)
	if isChart(made) {
		err = s.chart(ctx, o, made, tree)
	} else {
		err = s.unpack(ctx, o, made, config, tree, keep)
	}
	if err != nil {
		return nil, explained(about(err, asked, ""), keep)
	}
	return s.keep(ctx, folder, r, named, asked, check)
}

// explained adds to a refusal the reason why all files of the image were unpacked: without a label,
// the image may be neither a catalog nor a bundle.
func explained(err error, keep []string) error {
	var refused *Refused
	if errors.As(err, &refused) && refused.Path != "" && len(keep) == 1 && keep[0] == "." {
		refused.Reason += " (the image has no label of a catalog or a bundle, so all of it is read as manifests)"
	}
	return err
}

// describe requests the manifest for this platform, checks it, and requests the labels.
//
// Signed is nil if no signatures are required.
func (s *Store) describe(ctx context.Context, o *session) (made *specs.Manifest, config *specs.Image, signed *signer.Record, err error) {
	err = s.retried(ctx, func() error {
		signed = nil // discards the result of the previous attempt
		unparsed, found, err := o.instance(ctx)
		if err != nil {
			return err
		}
		if s.options.Registries.Policy != "" {
			if signed, err = checkSignatures(ctx, s.options.Registries.Policy, unparsed); err != nil {
				return o.explainUnsigned(ctx, err, unparsed)
			}
		}
		if o.rules != nil {
			if signed, err = o.verified(ctx, unparsed, signed); err != nil {
				return err
			}
		}
		if signed != nil {
			signed.Time = s.options.Clock.Now().UTC()
		}
		if err := checkManifest(found, s.options.Limits); err != nil {
			return err
		}
		if made = found; isChart(found) {
			return nil
		}
		if config, err = o.config(ctx, found.Config); err != nil {
			return about(err, "", found.Config.Digest.String())
		}
		return nil
	})
	return made, config, signed, err
}

// unpack writes the layers, and repeats a layer after an outage.
func (s *Store) unpack(ctx context.Context, o *session, made *specs.Manifest, config *specs.Image, tree string, keep []string) error {
	if err := os.Mkdir(tree, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, limits: s.options.Limits, keep: keep, used: used{folders: map[string]bool{}}}
	var unpacked int64
	for i, layer := range made.Layers {
		err := s.retried(ctx, func() error {
			before := unpacked
			err := s.layer(ctx, o, layer, config.RootFS.DiffIDs[i], u, &unpacked)
			if err != nil {
				unpacked = before
			}
			return err
		})
		if err != nil {
			return about(err, "", layer.Digest.String())
		}
	}
	return nil
}

// layer reads, checks and writes one layer. If several readers fail, it returns the error nearest
// to the registry, because the others result from it.
func (s *Store) layer(ctx context.Context, o *session, layer specs.Descriptor, diffID digest.Digest, u *unpacker, unpacked *int64) error {
	if err := diffID.Validate(); err != nil {
		return &Refused{Reason: "the configuration names an invalid digest", Err: err}
	}
	b, done, err := o.blob(ctx, layer)
	if err != nil {
		return err
	}
	defer done()
	stream, closed, err := decompress(b)
	if err != nil {
		return errors.Join(b.failed, &Refused{Reason: "it cannot be decompressed", Err: err})
	}
	defer closed()
	counted := &bounded{from: stream, used: unpacked, limit: s.options.Limits.Unpacked}
	content := &verified{from: counted, verifier: diffID.Verifier()}
	err = u.layer(content)
	if err == nil {
		err = content.finish()
	}
	switch {
	case b.failed != nil:
		return b.failed
	case counted.failed != nil:
		return counted.failed
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return err
	}
	return b.finish()
}
