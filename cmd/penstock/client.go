package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
)

// clientFlags say which cluster a verb talks to, as for kubectl.
type clientFlags struct {
	kubeconfig, context string
}

func (f *clientFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "Kubeconfig file of the cluster. Without it $KUBECONFIG, then ~/.kube/config.")
	flags.StringVar(&f.context, "context", "", "Context of the kubeconfig file. Without it the current one.")
}

// config is how to connect to the cluster, as the user that the kubeconfig names.
func (f *clientFlags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	config.UserAgent = "penstock/" + programVersion()
	// The server has priority and fairness.
	config.QPS = -1
	return config, nil
}

// client connects to the API of the cluster. What the server warns of is collected.
func (f *clientFlags) client() (*versioned.Clientset, *warnings, error) {
	config, err := f.config()
	if err != nil {
		return nil, nil, err
	}
	heard := &warnings{}
	config.WarningHandler = heard
	clients, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return clients, heard, nil
}

// warnings are those of a server, each once.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

var _ rest.WarningHandler = &warnings{}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(code int, _, text string) {
	const miscellaneous = 299
	w.mu.Lock()
	defer w.mu.Unlock()
	if code == miscellaneous && text != "" && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// take returns what there is, and forgets it.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
