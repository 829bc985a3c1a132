package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

type exitError struct {
	error
	status int
}

func (e *exitError) Unwrap() error { return e.error }

// wrongInput is the exit status for invalid flags and unreadable files. Scripts must distinguish it
// from the answer no.
const wrongInput = 2

// ExitStatus returns the exit status of an error, 1 by default.
func ExitStatus(err error) int {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.status
	}
	return 1
}

// Exit returns an error with an exit status.
func Exit(err error, status int) error { return &exitError{err, status} }

// Unusable returns an error with the exit status for unusable input.
func Unusable(err error) error { return Exit(err, wrongInput) }

// NewCatalog returns the commands for authors and readers of catalogs. They need no cluster.
func NewCatalog(p Program) *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Read file-based catalogs: resolve, check and compare them",
		Long: "Read file-based catalogs, without a cluster.\n\n" +
			"A catalog is a file or a directory of JSON or YAML documents, also compressed by gzip or zstd, or an image: oci://REFERENCE.\n" +
			"Exit status: 0 when the answer is yes, 1 when it is no, 2 when the input cannot be used.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return Unusable(errors.New("say what to do with the catalog: resolve, lint, graph or diff"))
		},
	}
	command.AddCommand(newCatalogResolve(p), newCatalogLint(p), newCatalogGraph(p), newCatalogDiff(p))
	for _, verb := range command.Commands() {
		verb.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Unusable(err) })
		count := verb.Args
		verb.Args = func(command *cobra.Command, args []string) error {
			if err := count(command, args); err != nil {
				return Unusable(err)
			}
			return nil
		}
	}
	return command
}

func loadCatalogs(ctx context.Context, images *registryFlags, paths []string) (*fbc.Config, error) {
	config := &fbc.Config{}
	for _, path := range paths {
		if err := loadCatalog(ctx, images, path, config); err != nil {
			return nil, Unusable(fmt.Errorf("reading catalog %s: %w", path, err))
		}
	}
	if config.Empty() {
		return nil, Unusable(fmt.Errorf("reading catalog %s: there is no document in it", strings.Join(paths, ", ")))
	}
	return config, nil
}

func loadCatalog(ctx context.Context, images *registryFlags, path string, into *fbc.Config) error {
	if ref, isImage := imageReference(path); isImage {
		return loadCatalogImage(ctx, images, ref, into)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return fbc.Read(ctx, file, filepath.Base(path), fbc.DefaultLimits(), into.Add)
	}
	// The root does not follow symbolic links out of the directory.
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	return fbc.ReadDirectory(ctx, root.FS(), fbc.DefaultLimits(), into.Add)
}

func loadCatalogImage(ctx context.Context, images *registryFlags, ref string, into *fbc.Config) error {
	fetched, err := images.fetch(ctx, ref)
	if err != nil {
		return err
	}
	defer fetched.Close()
	if fetched.Kind != image.Catalog {
		return fmt.Errorf("image %s has no catalog in it: the label %s is missing; its labels and media types say: %s", fetched.Reference, image.CatalogLabel, fetched.Kind)
	}
	return fbc.ReadDirectory(ctx, fetched.FS, fbc.DefaultLimits(), into.Add)
}

// packageOf returns the content of one package, or an error if there is none.
func packageOf(config *fbc.Config, name string) (*fbc.Config, error) {
	if own := config.Package(name); own != nil {
		return own, nil
	}
	return nil, Unusable(fmt.Errorf("the catalog has no package %q", name))
}

// printText prints text that quotes a catalog. The text is untrusted.
func printText(to io.Writer, text string) error {
	_, err := io.WriteString(to, screen.SafeLines(text))
	return err
}

// CheckOutput checks the format flag of commands that print text or JSON.
func CheckOutput(format string) error {
	if format != "text" && format != "json" {
		return Unusable(fmt.Errorf("--output %q: want text or json", format))
	}
	return nil
}
