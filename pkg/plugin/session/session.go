// Package session is one run of the plugin: its streams and flags, the connection to the cluster,
// and the output that all commands share.
package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/plugin/outcome"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// Process has the parts of the operating system for a run.
type Process struct {
	// Name is the name by which the user called the program. Args are its arguments.
	Name           string
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Terminal       screen.Terminal
	Clock          clock.WithTicker
	// Executable returns the path of the program.
	Executable func() (string, error)
	// Version is the version of the plugin.
	Version string
}

// Session is one run of the plugin.
type Session struct {
	Process
	// Out prints results. Err prints other messages for people.
	Out, Err *screen.Screen
	// Server is the version of the Penstock that answers.
	Server client.ServerVersion
	flags  client.Flags
	colour string

	mu     sync.Mutex
	warned []string
}

// New returns a run whose flags are not parsed yet.
func New(process Process) *Session {
	s := &Session{Process: process, colour: string(screen.ColourAuto)}
	s.flags.UserAgent = "kubectl-penstock/" + process.Version
	s.screens()
	return s
}

// AddFlags defines the flags that all commands have.
func (s *Session) AddFlags(flags *pflag.FlagSet) error {
	if err := s.flags.AddAll(flags); err != nil {
		return err
	}
	flags.StringVar(&s.colour, "color", s.colour, "Colours: auto (on a terminal, unless NO_COLOR is set), always or never.")
	return nil
}

// Flags returns the flags for the connection to the cluster.
func (s *Session) Flags() *client.Flags { return &s.flags }

// Begin must be called after the flags are parsed.
func (s *Session) Begin() error {
	allowed := []string{string(screen.ColourAuto), string(screen.ColourAlways), string(screen.ColourNever)}
	if !slices.Contains(allowed, s.colour) {
		return outcome.Errorf(outcome.Unknown, "--color %q: want auto, always or never", s.colour)
	}
	s.screens()
	return nil
}

// Namespace returns the value of the flag --namespace, empty without it.
func (s *Session) Namespace() string { return s.flags.Namespace() }

// ClusterArguments returns arguments with which another program reaches the same cluster.
func (s *Session) ClusterArguments() []string { return s.flags.Arguments() }

// Context returns the user's name for the cluster.
func (s *Session) Context() string { return s.flags.Context() }

// Nowhere refuses the flag --namespace, because almost no object here has a namespace.
func (s *Session) Nowhere() error {
	if namespace := s.flags.Namespace(); namespace != "" {
		return outcome.Errorf(outcome.Unknown, "--namespace %s is not allowed here: extensions, revisions and plans are not namespaced; leave it out", namespace)
	}
	return nil
}

func (s *Session) screens() {
	s.Out = screen.New(s.Stdout, s.Terminal, screen.Colour(s.colour), s.Getenv)
	s.Err = screen.New(s.Stderr, s.Terminal, screen.Colour(s.colour), s.Getenv)
}

// Person reports whether a user can answer a question.
func (s *Session) Person() bool {
	_, in := s.Terminal(s.Stdin)
	_, out := s.Terminal(s.Stderr)
	return in && out
}

// Confirm asks a question on the terminal.
func (s *Session) Confirm(ctx context.Context, question string) (bool, error) {
	return (&prompt{In: s.Stdin, Screen: s.Err, Person: s.Person()}).confirm(ctx, question)
}

// Cluster holds clients for a cluster.
type Cluster struct {
	versioned.Interface
	// REST sends requests to paths without a typed client.
	REST rest.Interface
	// Host is a client for the ClusterExtensions.
	Host dynamic.Interface
}

// Config returns the client configuration for the cluster that the flags name.
func (s *Session) Config() (*rest.Config, error) {
	config, err := s.flags.Config()
	if err != nil {
		return nil, err
	}
	config.WarningHandler = s
	s.Server.Listen(config)
	return config, nil
}

// Connect returns clients for the cluster. It sends no request.
func (s *Session) Connect() (*Cluster, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	host, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Cluster{Interface: clients, REST: clients.OlmV1alpha1().RESTClient(), Host: host}, nil
}

// HandleWarningHeader implements rest.WarningHandler. It prints each warning of the server once.
func (s *Session) HandleWarningHeader(code int, _, text string) {
	const miscellaneous = 299
	s.mu.Lock()
	defer s.mu.Unlock()
	if code != miscellaneous || text == "" || slices.Contains(s.warned, text) {
		return
	}
	s.warned = append(s.warned, text)
	s.Err.Para(screen.Yellow, screen.Notice, text)
}

// Skew returns a message if the server's minor version differs from the plugin's. It compares only
// release versions.
func (s *Session) Skew() string {
	own, err := version.ParseSemantic(s.Version)
	if err != nil {
		return ""
	}
	other, err := version.ParseSemantic(s.Server.Get())
	if err != nil || own.Major() == other.Major() && own.Minor() == other.Minor() {
		return ""
	}
	return fmt.Sprintf("this is kubectl-penstock %s, and the server is Penstock %s: features that only one of them has are missing here", s.Version, s.Server.Get())
}

// Now returns the time.
func (s *Session) Now() time.Time { return s.Clock.Now() }

// Within returns a context with a time limit; 0 means no limit.
func Within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, timeout, outcome.Errorf(outcome.TimedOut, "not done within %s", timeout))
}

// cleanupTime bounds the work after an interruption.
const cleanupTime = 15 * time.Second

// Cleanup returns a context for the work after an interruption.
func Cleanup(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
}

// Explain adds advice for the user to an error of the server.
func Explain(err error) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return err
	}
	hint := ""
	switch {
	case apierrors.IsForbidden(err):
		hint = "you lack the right; docs/reference/reads.md says which right each command needs"
	case apierrors.IsUnauthorized(err):
		hint = "sign in to the cluster again"
	case apierrors.IsServiceUnavailable(err), unserved(status):
		hint = "kubectl penstock check says whether Penstock is installed and reachable"
	}
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w\n%s", err, hint)
}

// Uninstalled replaces the error of a cluster without Penstock's API. It returns other errors
// unchanged.
func Uninstalled(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && unserved(status) {
		return outcome.Errorf(outcome.Unknown, "Penstock is not installed on this cluster; kubectl penstock check says more")
	}
	return err
}

// NotFound reports whether our API answered that an object does not exist. It is false for the 404
// of a cluster without our API.
func NotFound(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && !(errors.As(err, &status) && unserved(status))
}

// unserved is true for the answer of a host without our API.
func unserved(status apierrors.APIStatus) bool {
	said := status.Status()
	return said.Code == http.StatusNotFound && (said.Details == nil || cmp.Or(said.Details.Name, "") == "") ||
		strings.Contains(said.Message, "could not find the requested resource")
}
