// Package check checks an installation of Penstock from a client. It checks whether the cluster
// answers, trusts Penstock and sends requests to it, whether Penstock serves, and which rights the
// caller has.
package check

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned/scheme"
)

// State is the outcome of a check.
type State string

const (
	// OK: the check passed.
	OK State = "ok"
	// Failed: the check failed. Next is the next step.
	Failed State = "failed"
	// Unknown: the check was impossible, often because the caller lacks a right.
	Unknown State = "unknown"
	// Denied: the caller lacks a right. That is not a fault.
	Denied State = "denied"
	// Skipped: the check does not apply to this installation.
	Skipped State = "skipped"
)

// Result is the result of one check.
type Result struct {
	// Name is the name of the check, such as "apiservice v1alpha1.olm.operatorframework.io".
	Name  string `json:"name"`
	State State  `json:"state"`
	// Found is the finding, in words.
	Found string `json:"found"`
	// Next is the next step, as an instruction; empty for none.
	Next string `json:"next,omitempty"`
}

// Options configure the checks.
type Options struct {
	// Config is the configuration for requests to the cluster, as the caller.
	Config *rest.Config
	// Version is the version of this program, to compare with the server's; empty compares nothing.
	Version string
	// Now is the time for checks of certificates and leases.
	Now time.Time
	// Timeout bounds one request; 0 is 10 seconds.
	Timeout time.Duration
}

const defaultTimeout = 10 * time.Second

// Failing reports whether a result has failed.
func Failing(results []Result) bool {
	for _, result := range results {
		if result.State == Failed {
			return true
		}
	}
	return false
}

// check is a row of the table of checks. It has one result, or one result for each checked object.
type check struct {
	name string
	run  func(*installation, context.Context) []Result
}

// checks returns the checks. Each check may need the results of earlier checks.
func checks() []check {
	return []check{
		{"apiservice", (*installation).apiServices},
		{"certificate", (*installation).certificates},
		{"discovery", (*installation).discovery},
		{"pods", (*installation).pods},
		{"store", (*installation).stores},
		{"readiness", (*installation).readiness},
		{"controllers", (*installation).controllers},
		{"rights", (*installation).rights},
		{"version", (*installation).versions},
	}
}

// Run runs all checks. It changes nothing. If the cluster does not answer, that is the only result.
// An error is a fault of the configuration.
func Run(ctx context.Context, o Options) ([]Result, error) {
	in, err := newInstallation(o)
	if err != nil {
		return nil, err
	}
	first := in.cluster(ctx)
	results := []Result{first}
	if first.State != OK {
		return results, nil
	}
	for _, c := range checks() {
		found := c.run(in, ctx)
		// Requests to Penstock would fail too, with less detail.
		if root := rootCause(c.name, found, results[1:]); root != nil {
			results = results[:1]
			if pods := in.pods(ctx); Failing(pods) {
				results = append(results, pods...)
			}
			return append(results, *root), nil
		}
		results = append(results, found...)
	}
	return results, nil
}

// rootCause returns one result that explains why every check of a stage failed: Penstock is not
// installed, or does not answer. It returns nil if another cause is possible. Its Next is from the
// first failure.
func rootCause(check string, results, earlier []Result) *Result {
	if check != "apiservice" && check != "discovery" {
		return nil
	}
	absent := true
	for _, result := range results {
		if result.State != Failed {
			return nil
		}
		absent = absent && result.Found == notThere
	}
	first := results[0]
	for _, result := range slices.Backward(earlier) {
		if result.State == Failed {
			first = result
		}
	}
	if absent {
		return &Result{"penstock", Failed, "Penstock is not installed on this cluster", first.Next}
	}
	return &Result{"penstock", Failed, "Penstock does not answer: " + first.Name + ": " + first.Found, first.Next}
}

type installation struct {
	Options
	client   rest.Interface
	answered *client.ServerVersion
	// services holds the registrations by group; nil for a registration that does not exist or
	// cannot be read.
	services map[string]*apiService
}

func newInstallation(o Options) (*installation, error) {
	config := rest.CopyConfig(o.Config)
	in := &installation{Options: o, answered: &client.ServerVersion{}, services: map[string]*apiService{}}
	in.answered.Listen(config)
	config.NegotiatedSerializer = serializer.WithoutConversionCodecFactory{CodecFactory: scheme.Codecs}
	config.Timeout = o.Timeout
	if config.Timeout == 0 {
		config.Timeout = defaultTimeout
	}
	var err error
	if in.client, err = rest.UnversionedRESTClientFor(config); err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return in, nil
}
