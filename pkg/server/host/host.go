// Package host is the connection to the cluster that Penstock extends. It provides the host's
// address and credentials, the difference of the clocks, and the trusted authorities of client
// certificates. It finds the parts of the generic API server that the host supports.
package host

import (
	"context"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

const (
	// hostRetry is the pause between tries to reach the host at start. hostComplain is the interval
	// of log lines about an unreachable host.
	hostRetry    = time.Second
	hostComplain = 15 * time.Second
	// defaultCredentialsPatience is the time at start for which a host may refuse Penstock's
	// credentials.
	defaultCredentialsPatience = time.Minute

	// oldestMinor and newestMinor bound the tested versions of the host, 1.oldestMinor to
	// 1.newestMinor.
	oldestMinor, newestMinor = 34, 37
)

// Host is the cluster that Penstock extends. Its kube-apiserver forwards requests, authorizes
// users, and keeps the records that must outlive our store.
type Host struct {
	config  *rest.Config
	version string
	// skew is the difference between this machine's clock and the host's.
	skew *clockSkew
	// credentialsPatience limits the retries at start while the host refuses Penstock's
	// credentials.
	credentialsPatience time.Duration
}

// New reads a kubeconfig file, or the in-cluster configuration if the path is empty. version is
// Penstock's version, for the user agent.
func New(kubeconfig, version string) (*Host, error) {
	config, err := loadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	// The host limits requests by priority and fairness. A client-side limit would only delay
	// requests that the host would admit.
	config.QPS = -1
	skew := &clockSkew{now: time.Now, log: klog.Background().WithName("clock")}
	config.Wrap(skew.wrap)
	return &Host{config: config, version: version, skew: skew, credentialsPatience: defaultCredentialsPatience}, nil
}

func loadKubeconfig(path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("finding the host cluster: neither --kubeconfig nor $KUBECONFIG is set, and this process does not run in a pod: %w", err)
		}
		return config, nil
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: path}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig %s: %w", path, err)
	}
	return config, nil
}

// doubtOf returns a message if Penstock was not tested with this version of the host, or "". It is
// for the log only: Penstock asks the host for its features.
func doubtOf(gitVersion string) string {
	version, err := utilversion.ParseSemantic(gitVersion)
	switch {
	case err != nil:
		return "it cannot be read: " + err.Error()
	case version.Major() != 1 || version.Minor() < oldestMinor:
		return fmt.Sprintf("the oldest one is 1.%d", oldestMinor)
	case version.Minor() > newestMinor:
		return fmt.Sprintf("the newest one is 1.%d", newestMinor)
	}
	return ""
}

// UserAgent returns the user agent of a part of this process, which distinguishes its requests in
// the host's audit log.
func (h *Host) UserAgent(component string) string {
	return "penstock/" + h.version + "/" + component
}

// ClockSkew returns by how many seconds this machine's clock is ahead of the host's, from the
// host's last answer.
func (h *Host) ClockSkew() float64 { return h.skew.seconds() }

// Config returns the base of all client configurations; do not change it.
func (h *Host) Config() *rest.Config { return h.config }

// ConfigFor returns a client configuration for a part of this process.
func (h *Host) ConfigFor(component string) *rest.Config {
	config := rest.CopyConfig(h.config)
	config.UserAgent = h.UserAgent(component)
	return config
}

// WithUserAgent returns a wrapper that sets the user agent of clients that a library creates.
func (h *Host) WithUserAgent(component string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &userAgentRoundTripper{agent: h.UserAgent(component), next: next}
	}
}

type userAgentRoundTripper struct {
	agent string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *userAgentRoundTripper) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", t.agent)
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the inner transport, to close idle connections.
func (t *userAgentRoundTripper) WrappedRoundTripper() http.RoundTripper {
	return t.next
}

// Wait returns nil when the host answers, or an error when ctx ends. Penstock needs the host at
// start: the host's records distinguish a first start from a lost store. If the host refuses our
// credentials, Wait retries for a while, because a token file may be renewed. After that the
// refusal is an error, because an administrator must correct the credentials.
func (h *Host) Wait(ctx context.Context) error {
	config := h.ConfigFor("start")
	config.Timeout = 5 * time.Second
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the host cluster: %w", err)
	}
	log := klog.FromContext(ctx)
	var complained, refused time.Time
	for {
		version, err := client.ServerVersion()
		if err == nil {
			log.Info("Reached the host cluster", "server", h.config.Host, "version", version.GitVersion)
			if doubt := doubtOf(version.GitVersion); doubt != "" {
				log.Info("The host cluster's version is not one that Penstock is tested with", "version", version.GitVersion, "reason", doubt)
			}
			return nil
		}
		switch unauthorized := apierrors.IsUnauthorized(err); {
		case !unauthorized:
			refused = time.Time{}
		case refused.IsZero():
			refused = time.Now()
		case time.Since(refused) > h.credentialsPatience:
			return fmt.Errorf("the host cluster %s answers, but does not accept the credentials: put valid ones into the kubeconfig or token file: %w", h.config.Host, err)
		}
		if time.Since(complained) > hostComplain {
			complained = time.Now()
			if refused.IsZero() {
				log.Error(err, "The host cluster does not answer; trying again until it does", "server", h.config.Host)
			} else {
				log.Error(err, "The host cluster answers, but does not accept the credentials; trying again for a while", "server", h.config.Host, "patience", h.credentialsPatience)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the host cluster %s: %w (last error: %w)", h.config.Host, context.Cause(ctx), err)
		case <-time.After(hostRetry):
		}
	}
}
