// Package client has the shared code of commands that call Penstock's API: it finds the cluster,
// and prints the server's warnings.
package client

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// Flags select the cluster of a command, as in kubectl.
type Flags struct {
	kubeconfig string
	overrides  clientcmd.ConfigOverrides
	// UserAgent is sent with each request: the name of the program, and its version.
	UserAgent string
}

// Add defines the flags of a command.
func (f *Flags) Add(flags *pflag.FlagSet) {
	f.addKubeconfig(flags)
	flags.StringVar(&f.overrides.CurrentContext, "context", "", "Context of the kubeconfig file. Without it the current one.")
}

func (f *Flags) addKubeconfig(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "Kubeconfig file of the cluster. Without it $KUBECONFIG, then ~/.kube/config.")
}

// AddAll defines all flags of kubectl about the cluster and the user. Help shows only the common
// flags.
func (f *Flags) AddAll(flags *pflag.FlagSet) error {
	f.addKubeconfig(flags)
	clientcmd.BindOverrideFlags(&f.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	var err error
	flags.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains([]string{"kubeconfig", "context", "as", "request-timeout"}, flag.Name) {
			err = cmp.Or(err, flags.MarkHidden(flag.Name))
		}
	})
	return err
}

// Namespace returns the value of the flag --namespace, empty without it.
func (f *Flags) Namespace() string { return f.overrides.Context.Namespace }

// Context returns the name of the selected context of the kubeconfig, which is the user's name for
// the cluster. It is empty without a kubeconfig.
func (f *Flags) Context() string {
	if f.overrides.CurrentContext != "" {
		return f.overrides.CurrentContext
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loaded, err := rules.Load()
	if err != nil {
		return "" // Config returns the error
	}
	return loaded.CurrentContext
}

// Arguments returns the flags --kubeconfig and --context as given, for another program that calls
// the same cluster.
func (f *Flags) Arguments() []string {
	var out []string
	if f.kubeconfig != "" {
		out = append(out, "--kubeconfig", f.kubeconfig)
	}
	if f.overrides.CurrentContext != "" {
		out = append(out, "--context", f.overrides.CurrentContext)
	}
	return out
}

// ErrNoKubeconfig reports that no kubeconfig was found.
var ErrNoKubeconfig = errors.New("no kubeconfig")

// Config returns the configuration for requests to the cluster, as the user of the kubeconfig.
func (f *Flags) Config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("%w: set $KUBECONFIG or --kubeconfig; there is none at %s", ErrNoKubeconfig, strings.Join(rules.GetLoadingPrecedence(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	config.UserAgent = f.UserAgent
	// The server has priority and fairness.
	config.QPS = -1
	return config, nil
}

// Client returns a client for the API of the cluster. It collects warnings of the server.
func (f *Flags) Client() (*versioned.Clientset, *Warnings, error) {
	config, err := f.Config()
	if err != nil {
		return nil, nil, err
	}
	heard := &Warnings{}
	config.WarningHandler = heard
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return clients, heard, nil
}

// Warnings collects the warnings of a server, each once. The zero value is ready to use.
type Warnings struct {
	mu    sync.Mutex
	texts []string
}

var _ rest.WarningHandler = &Warnings{}

// HandleWarningHeader implements rest.WarningHandler.
func (w *Warnings) HandleWarningHeader(code int, _, text string) {
	const miscellaneous = 299
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == miscellaneous && text != "" && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// Take returns the collected warnings and clears them.
func (w *Warnings) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
