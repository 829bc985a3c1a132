package command

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/console"
	"github.com/penstock-project/penstock/pkg/console/screens"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
	"github.com/penstock-project/penstock/pkg/plugin/session"
)

type consoleOptions struct {
	port                int
	noBrowser, readOnly bool
	// place is the page to open; empty for the first page.
	place string
}

func newConsole(s *session.Session) *cobra.Command {
	var options consoleOptions
	command := &cobra.Command{
		Use:   "console [LINK]",
		Short: "Review, approve and watch in a browser on this machine",
		Long: "Serve the console to a browser on this machine, until you interrupt it. The console sends all requests to the\n" +
			"cluster in your name: it has no rights of its own. The address contains a key, and anyone with this key can act as you.\n" +
			"The console listens on loopback only; from another machine, use ssh -L.\n" +
			"A link to a page of any console opens the same page of this one.",
		Example: "  kubectl penstock console\n  kubectl penstock console --no-browser --port 8090 --read-only\n" +
			"  kubectl penstock console https://penstock.example.com/#/x/argocd",
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) == 1 {
				var err error
				if options.place, err = placeOf(args[0]); err != nil {
					return err
				}
			}
			return serveConsole(command.Context(), s, options)
		},
	}
	flags := command.Flags()
	flags.IntVar(&options.port, "port", 0, "Port on loopback. Default: any free port.")
	flags.BoolVar(&options.noBrowser, "no-browser", false, "Only print the address.")
	flags.BoolVar(&options.readOnly, "read-only", false, "Only show: no button changes anything.")
	return command
}

// placeOf returns the page of a link, escaped for a URL.
func placeOf(link string) (string, error) {
	read, err := url.Parse(link)
	switch {
	case err == nil && strings.HasPrefix(read.Fragment, "/"):
		return read.EscapedFragment(), nil
	case err == nil && read.Host != "" && read.Fragment == "" && strings.Trim(read.Path, "/") != "":
		return (&url.URL{Path: read.Path, RawPath: read.RawPath, RawQuery: read.Query().Encode()}).String(), nil
	}
	return "", outcome.Errorf(outcome.Unknown, "%q is not a link to a page of a console, which is https://HOST/x/argocd or has #/ and a place, as #/x/argocd", link)
}

func serveConsole(ctx context.Context, s *session.Session, options consoleOptions) error {
	if options.port < 0 || options.port > 65535 {
		return outcome.Errorf(outcome.Unknown, "--port %d: want 1 to 65535, or 0 for any free one", options.port)
	}
	config, err := s.Config()
	if err != nil {
		return err
	}
	config.UserAgent = "penstock-console/" + s.Version
	// When a user leaves a page, its requests end, and the library would log errors here.
	klog.SetLogger(logr.Discard())
	shown, err := screens.New(screens.Options{Config: config, Cluster: s.Context(), Version: s.Version, ReadOnly: options.readOnly})
	if err != nil {
		return err
	}
	door, err := console.Listen(options.port)
	if err != nil {
		return err
	}
	key := console.NewKey()
	handler, err := console.New(console.Options{Key: key, Hosts: door.Hosts, Screens: shown, Clock: s.Clock})
	if err != nil {
		return errors.Join(err, door.Close())
	}
	address := door.Address + "/#key=" + key
	if options.place != "" {
		address += "&at=" + options.place
	}
	s.Out.Printf("%s\n", address)
	s.Err.Para(screen.Dim, screen.Waiting, fmt.Sprintf("the console of %s, in your name; interrupt to end it", s.Context()))
	if !options.noBrowser {
		remove := browse(ctx, s, address)
		defer remove()
	}
	return serve(ctx, door, handler)
}

// The timeouts of the console's server. There is none for a whole answer, because streams last.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
)

func serve(ctx context.Context, door *console.Door, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: 64 << 10}
	ended := make(chan error, len(door.Listeners))
	for _, listener := range door.Listeners {
		go func() { ended <- server.Serve(listener) }()
	}
	select {
	case <-ctx.Done():
		// Streams would last for ever: ending the console must end them.
		return errors.Join(ctx.Err(), server.Close())
	case err := <-ended:
		return errors.Join(fmt.Errorf("serving the console: %w", err), server.Close())
	}
}

// browse opens the address in a browser. The address has the key, and every user of a machine sees
// the arguments of its processes. So browse passes it in a file that only this user can read. The
// returned function removes the file.
func browse(ctx context.Context, s *session.Session, address string) (remove func()) {
	file, err := pageTo(address)
	if err != nil {
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("no browser was opened: %v", err))
		return func() {}
	}
	command, args := "xdg-open", []string{file}
	switch runtime.GOOS {
	case "darwin":
		command = "open"
	case "windows":
		command, args = "rundll32", []string{"url.dll,FileProtocolHandler", file}
	}
	if err := exec.CommandContext(ctx, command, args...).Start(); err != nil {
		s.Err.Para(screen.Yellow, screen.Notice, fmt.Sprintf("no browser was opened (%v): open the address above", err))
	}
	return func() { _ = os.Remove(file) } // the address does not work any more
}

// pageTo writes a page that redirects to an address. Only this user can read it.
func pageTo(address string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding your cache folder: %w", err)
	}
	folder := filepath.Join(cache, "penstock")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("creating a folder for the console: %w", err)
	}
	file, err := os.CreateTemp(folder, "console-*.html") // with mode 0600
	if err != nil {
		return "", fmt.Errorf("writing a page that leads to the console: %w", err)
	}
	_, err = fmt.Fprintf(file, "<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\"><title>Penstock</title>", html.EscapeString(address))
	if err := errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("writing a page that leads to the console: %w", err)
	}
	return file.Name(), nil
}
