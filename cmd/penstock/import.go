package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/store/archive"
	"github.com/penstock-project/penstock/pkg/text"
)

type importOptions struct {
	client.Flags
	extensions []string
	paused     bool
	check      bool
}

// newImportCommand returns the command that imports an archive into the store of a cluster, through
// the API.
func newImportCommand() *cobra.Command {
	options := importOptions{Flags: client.Flags{UserAgent: userAgent()}}
	command := &cobra.Command{
		Use:   "import FILE",
		Short: "Create the extensions of an archive in a store that does not have them",
		Long: "Read an archive that penstock export wrote and create its extensions through the API of a cluster,\n" +
			"with all revisions and their history. When the store has, or had, one of the\n" +
			"extensions, nothing of the archive is imported. To finish an interrupted import, run the command again.\n\n" +
			"Active revisions are rolled out. Objects that already have the marks of the extension, because the\n" +
			"archive comes from this cluster, are recognised and stay as they are. Nothing is deleted.\n" +
			"Use the newest archive: an old one rolls out old content. With --paused nothing is rolled out.\n\n" +
			"You need the rights to create revisionhistories/import and clusterextensionrevisions.",
		Example: "  penstock import everything.tar.zst --check\n" +
			"  penstock import everything.tar.zst\n" +
			"  penstock import everything.tar.zst --extension argocd --paused",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return runImport(command, args[0], options) },
	}
	flags := command.Flags()
	options.Add(flags)
	flags.StringSliceVar(&options.extensions, "extension", nil, "Extension to import; may be given several times. Without it, all extensions of the archive.")
	flags.BoolVar(&options.paused, "paused", false, "Import active revisions as paused ones: nothing is written to the cluster until their lifecycleState is Active again.")
	flags.BoolVar(&options.check, "check", false, "Check whether the import would be accepted, and write nothing.")
	return command
}

// runImport reads the archive three times instead of keeping it in memory. It checks that the
// archive is complete, lets the server check every chain, and imports.
func runImport(command *cobra.Command, path string, options importOptions) error {
	clients, heard, err := options.Client()
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	i := &importer{
		api: clients.OlmV1alpha1().RESTClient(), heard: heard, file: file, options: options,
		out: command.ErrOrStderr(), pause: sendPause,
	}
	ctx := command.Context()
	if err := i.inspect(ctx); err != nil {
		return fmt.Errorf("nothing imported: %s: %w", path, err)
	}
	if err := i.sendAll(ctx, true); err != nil {
		return fmt.Errorf("nothing imported: %w", err)
	}
	checked := heard.Take()
	if options.check {
		if err := i.printWarnings(checked); err != nil {
			return err
		}
		_, err := fmt.Fprintf(i.out, "%s can be imported; nothing was written\n", text.Count(i.count, "extension"))
		return err
	}
	if err := i.sendAll(ctx, false); err != nil {
		return fmt.Errorf("the import is incomplete; remove the cause, then run the command again to add the missing objects: %w", err)
	}
	if err := i.printWarnings(checked); err != nil {
		return err
	}
	_, err = fmt.Fprintf(i.out, "%s imported\n", text.Count(i.imported, "extension"))
	return err
}

// importer sends chains of an archive to the server, one per request.
type importer struct {
	api     rest.Interface
	heard   *client.Warnings
	file    io.ReadSeeker
	options importOptions
	out     io.Writer
	pause   time.Duration
	// count is the number of chains to import. imported is the number that this command has
	// imported.
	count, imported int
}

const (
	// sendTries is the number of requests to a server that is busy or unavailable. sendPause is the
	// pause between them. A starting server is ready within seconds.
	sendTries = 8
	sendPause = 2 * time.Second
)

// sendAll sends every chain. It repeats unanswered requests: the server recognises an import that
// was finished or begun.
func (i *importer) sendAll(ctx context.Context, check bool) error {
	sent := map[string]bool{}
	for try := 1; ; try++ {
		err := i.each(ctx, func(c *outgoing) error {
			if sent[c.Name] {
				return c.revisions(ctx, func(archive.Item) error { return nil })
			}
			if err := i.send(ctx, c, check); err != nil {
				return err
			}
			sent[c.Name] = true
			return nil
		})
		if err == nil || try == sendTries || !client.MayPass(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(i.pause):
		}
	}
}

type outgoing struct {
	archive.Chain
	reader *archive.Reader
}

func (i *importer) printWarnings(warned []string) error {
	for _, text := range warned {
		if _, err := fmt.Fprintf(i.out, "warning: %s\n", text); err != nil {
			return err
		}
	}
	return nil
}

func (i *importer) inspect(ctx context.Context) error {
	missing := map[string]bool{}
	for _, name := range i.options.extensions {
		missing[name] = true
	}
	err := i.each(ctx, func(c *outgoing) error {
		delete(missing, c.Name)
		i.count++
		return c.revisions(ctx, func(archive.Item) error { return nil })
	})
	if err != nil {
		return err
	}
	for name := range missing {
		return fmt.Errorf("it has no extension %s", name)
	}
	if i.count == 0 {
		return errors.New("it has no extensions")
	}
	return nil
}

// each calls a function for every chain to import. It reads the archive to its
// end.
func (i *importer) each(ctx context.Context, do func(*outgoing) error) error {
	if _, err := i.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	reader, err := archive.NewReader(i.file, archive.DefaultLimits())
	if err != nil {
		return err
	}
	defer reader.Close()
	for {
		item, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		chain := &outgoing{Chain: *item.Chain, reader: reader}
		if !i.wanted(chain.Name) {
			err = chain.revisions(ctx, func(archive.Item) error { return nil })
		} else {
			err = do(chain)
		}
		if err != nil {
			return err
		}
	}
}

func (i *importer) wanted(name string) bool {
	for _, wanted := range i.options.extensions {
		if wanted == name {
			return true
		}
	}
	return len(i.options.extensions) == 0
}

func (c *outgoing) revisions(ctx context.Context, do func(archive.Item) error) error {
	for range c.Revisions {
		item, err := c.reader.Next(ctx)
		if err != nil {
			return err
		}
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

// send posts one chain as a separate archive, while it reads the chain.
func (i *importer) send(ctx context.Context, chain *outgoing, check bool) error {
	body, feed := io.Pipe()
	written := make(chan error, 1)
	go func() {
		err := chain.write(ctx, feed)
		written <- err
		// CloseWithError never fails. A nil error means the end.
		_ = feed.CloseWithError(err)
	}()
	history := &v1alpha1.RevisionHistory{}
	request := i.api.Post().Resource("revisionhistories").Name(chain.Name).SubResource("import").
		SetHeader("Content-Type", "application/zstd").Body(io.Reader(body))
	if check {
		request = request.Param("check", "true")
	}
	if i.options.paused {
		request = request.Param("paused", "true")
	}
	var status int
	err := request.Do(ctx).StatusCode(&status).Into(history)
	_ = body.CloseWithError(errAnswered)
	// A server that refuses does not read to the end, and the transport closes the body when it has
	// the answer. Neither is a failure of the archive.
	if failed := <-written; failed != nil && !errors.Is(failed, errAnswered) && !errors.Is(failed, io.ErrClosedPipe) {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("%s: %w%s", chain.Name, err, behind(err))
	}
	switch {
	case check:
		return nil
	case status == http.StatusOK:
		_, err = fmt.Fprintf(i.out, "%s: was imported from this archive before\n", chain.Name)
	default:
		i.imported++
		_, err = fmt.Fprintf(i.out, "%s: %s, %s of history\n", chain.Name, text.Count(len(chain.Revisions), "revision"), text.Count(len(chain.History), "row"))
	}
	return err
}

// behind returns the answer of a proxy or another server in between, which client-go omits from the
// error's text.
func behind(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse && cause.Message != "" {
			return " (" + strings.TrimSpace(cause.Message) + ")"
		}
	}
	return ""
}

var errAnswered = errors.New("the server has answered")

func (c *outgoing) write(ctx context.Context, w io.Writer) error {
	out, err := archive.NewWriter(w)
	if err != nil {
		return err
	}
	if err := out.Chain(c.Chain); err != nil {
		return err
	}
	err = c.revisions(ctx, func(item archive.Item) error { return out.Revision(*item.Revision, item.Objects) })
	if err != nil {
		return err
	}
	return out.Close()
}
