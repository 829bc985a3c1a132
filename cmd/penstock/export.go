package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	olmclient "github.com/penstock-project/penstock/pkg/generated/clientset/versioned/typed/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/text"
)

type exportOptions struct {
	client.Flags
	extensions []string
	output     string
}

// newExportCommand returns the command that writes chains to an archive. It reads only through the
// API, with the user's rights.
func newExportCommand() *cobra.Command {
	options := exportOptions{Flags: client.Flags{UserAgent: userAgent()}}
	command := &cobra.Command{
		Use:   "export -o FILE",
		Short: "Write extensions, with all revisions and their history, into an archive",
		Long: "Read revisions, manifests and histories through the API of a cluster and write them into one archive,\n" +
			"from which penstock import creates them in another store.\n\n" +
			"THE ARCHIVE HAS THE SECRETS OF THE REVISIONS IN CLEAR TEXT. Protect it as you protect them.\n\n" +
			"You need the rights to list clusterextensionrevisions, to get clusterextensionrevisions/manifests and\n" +
			"revisionhistories, and to get the Secrets themselves in the cluster. If a right is missing, nothing is written.",
		Example: "  penstock export -o everything.tar.zst\n" +
			"  penstock export --extension argocd --extension cert-manager -o two.tar.zst\n" +
			"  penstock export -o - | age -r age1… > everything.tar.zst.age",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return export(command, options) },
	}
	flags := command.Flags()
	options.Add(flags)
	flags.StringSliceVar(&options.extensions, "extension", nil, "Extension to export; may be given several times. Without it, all extensions that have revisions.")
	flags.StringVarP(&options.output, "output", "o", "", "File to write, replaced when it exists; - is standard output.")
	if err := command.MarkFlagRequired("output"); err != nil {
		panic(err) // Only an undefined flag causes an error.
	}
	return command
}

func export(command *cobra.Command, options exportOptions) error {
	clients, heard, err := options.Client()
	if err != nil {
		return err
	}
	e := &exporter{api: clients.OlmV1alpha1(), heard: heard}
	ctx := command.Context()
	names, err := e.names(ctx, options.extensions)
	if err != nil {
		return err
	}
	err = writeOutput(options.output, command.OutOrStdout(), func(w io.Writer) error { return e.write(ctx, w, names) })
	if err != nil {
		return fmt.Errorf("nothing exported: %w", err)
	}
	_, err = io.WriteString(command.ErrOrStderr(), e.summary(options.output))
	return err
}

// writeOutput creates a file only if it is complete. No other user can read it.
func writeOutput(path string, stdout io.Writer, write func(io.Writer) error) error {
	if path == "-" {
		return write(stdout)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.partial")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // After success the file has another name.
	defer file.Close()
	// CreateTemp creates files with mode 0600, and a rename keeps the mode.
	if err := errors.Join(write(file), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

type exporter struct {
	api     olmclient.OlmV1alpha1Interface
	heard   *client.Warnings
	done    []string
	secrets int
	notes   []string
}

func (e *exporter) names(ctx context.Context, wanted []string) ([]string, error) {
	if len(wanted) > 0 {
		slices.Sort(wanted)
		return slices.Compact(wanted), nil
	}
	found := map[string]bool{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return e.api.ClusterExtensionRevisions().List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		found[item.(*v1alpha1.ClusterExtensionRevision).Labels[v1alpha1.ChainLabel]] = true
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing revisions: %w", err)
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func (e *exporter) write(ctx context.Context, w io.Writer, names []string) error {
	out, err := archive.NewWriter(w)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := e.chain(ctx, out, name); err != nil {
			return fmt.Errorf("exporting %s: %w", name, err)
		}
	}
	return out.Close()
}

// chain exports one chain. Its revisions and its history are from one moment; manifests never
// change.
func (e *exporter) chain(ctx context.Context, out *archive.Writer, name string) error {
	state, err := e.state(ctx, name)
	if err != nil {
		return err
	}
	chain := archivedChain(name, state)
	if err := out.Chain(chain); err != nil {
		return err
	}
	manifests := 0
	for i := range state.revisions {
		revision := &state.revisions[i]
		objects, err := e.objects(ctx, revision)
		if err != nil {
			return err
		}
		archived, err := archivedRevision(revision)
		if err != nil {
			return err
		}
		if err := out.Revision(archived, objects); err != nil {
			return err
		}
		manifests += len(objects)
	}
	e.done = append(e.done, fmt.Sprintf("%s: %s, %s, %s of history",
		name, text.Count(len(state.revisions), "revision"), text.Count(manifests, "manifest"), text.Count(len(chain.History), "row")))
	return nil
}

// objects reads all manifests of a revision, or returns an error: an archive with missing manifests
// could not be imported.
func (e *exporter) objects(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) ([]manifest.Object, error) {
	e.heard.Take()
	list, err := e.api.ClusterExtensionRevisions().GetManifests(ctx, revision.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading the manifests of %s: %w", revision.Name, err)
	}
	var entries []v1alpha1.RevisionObject
	for _, phase := range revision.Spec.Phases {
		entries = append(entries, phase.Objects...)
	}
	if len(list.Items) != len(entries) {
		return nil, fmt.Errorf("%d of the %d manifests of %s could be read: %s",
			len(list.Items), len(entries), revision.Name, strings.Join(e.heard.Take(), "; "))
	}
	objects := make([]manifest.Object, 0, len(entries))
	for i, item := range list.Items {
		object, err := manifest.Parse(item.Raw)
		if err != nil {
			return nil, fmt.Errorf("reading the manifests of %s: %w", revision.Name, err)
		}
		object.Digest = manifest.Digest(entries[i].Digest)
		if object.IsSecret() {
			e.secrets++
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (e *exporter) summary(output string) string {
	var b strings.Builder
	for _, line := range append(e.done, e.notes...) {
		fmt.Fprintln(&b, line)
	}
	if output == "-" {
		output = "standard output"
	}
	fmt.Fprintf(&b, "%s written to %s\n", text.Count(len(e.done), "extension"), output)
	if e.secrets > 0 {
		fmt.Fprintf(&b, "CAUTION: the archive has %s in clear text: protect it as you protect them\n", text.Count(e.secrets, "Secret"))
	}
	return b.String()
}
