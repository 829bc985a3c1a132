// Package targetcluster is the connection to the default target cluster of revisions, if it is not
// the host.
package targetcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout/kubeconfig"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/target"
)

const (
	// lookInterval is the interval at which the kubeconfig is read. retryFirst is the first pause
	// between tries to reach the cluster; it doubles up to retryMax.
	lookInterval = 2 * time.Second
	retryFirst   = time.Second
	retryMax     = 10 * time.Second
	tryTimeout   = 10 * time.Second
)

// Cluster is the target of revisions when it is not the host (--target-kubeconfig). Penstock first
// identifies the cluster. It must be the cluster that the store knows, and this Penstock must have
// claimed it. Until then every other request fails with the reason, as for an unreachable cluster.
type Cluster struct {
	file string
	// accepted names the cluster that the user confirmed, see --confirm-target-change.
	accepted  string
	visitor   target.Visitor
	userAgent func(part string) string
	// checkTarget records the cluster of the inventories.
	checkTarget func(ctx context.Context, cluster string, forget bool) error
	link        *kubeconfig.Link
	interval    time.Duration
}

// Options holds the settings of a Cluster.
type Options struct {
	// File is the path of the kubeconfig.
	File string
	// Accept names the cluster that the user confirmed, see --confirm-target-change.
	Accept      string
	Visitor     target.Visitor
	Inventories *chain.Inventories
	// UserAgent returns the user agent of a part of this process, for the cluster's audit log.
	UserAgent func(part string) string
}

// New reads the kubeconfig. An invalid file ends the start with an error. A file that becomes invalid
// later is reported in status.
func New(o Options) (*Cluster, error) {
	t := &Cluster{
		file: o.File, accepted: o.Accept, visitor: o.Visitor, userAgent: o.UserAgent,
		checkTarget: o.Inventories.CheckTarget, link: kubeconfig.NewLink(), interval: lookInterval,
	}
	_, _, err := t.read()
	return t, err
}

// Config returns a configuration for clients of the target cluster.
func (t *Cluster) Config(component string) *rest.Config {
	config := t.link.Config()
	config.UserAgent = t.userAgent(component)
	return config
}

func (t *Cluster) read() ([]byte, *rest.Config, error) {
	raw, err := os.ReadFile(t.file)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --target-kubeconfig: %w", err)
	}
	config, err := kubeconfig.Parse(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("reading --target-kubeconfig %s: %w", t.file, err)
	}
	return raw, config, nil
}

// Run watches the file and connects the link to its cluster, until ctx ends.
func (t *Cluster) Run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("target")
	ctx = klog.NewContext(ctx, log)
	var used []byte
	wait, told := retryFirst, ""
	for {
		raw, config, err := t.read()
		switch {
		case err == nil && used != nil && bytes.Equal(raw, used):
			wait = t.interval
		case err == nil:
			err = t.lead(ctx, config)
			if err == nil {
				used, wait, told = raw, t.interval, ""
				log.Info("Rolling out into another cluster", "server", config.Host)
			}
		}
		if err != nil && ctx.Err() == nil {
			wait = min(2*wait, retryMax)
			if err.Error() != told {
				told = err.Error()
				log.Error(err, "The kubeconfig of the target cluster cannot be used; trying again", "before", stays(used != nil && !misled(err)))
			}
			if used == nil || misled(err) {
				t.link.Lose(err)
				used = nil
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// stays returns the state of the previous kubeconfig, for the log.
func stays(inUse bool) string {
	if inUse {
		return "stays in use"
	}
	return "none is in use: nothing is rolled out"
}

// misled is true if the kubeconfig points to the wrong cluster: then nothing is done in either
// cluster. While the cluster is unknown, the previous connection stays in use; the cluster itself
// reports its problems.
func misled(err error) bool {
	var elsewhere *chain.OtherTargetError
	var claimed *target.ClaimedError
	return errors.As(err, &elsewhere) || errors.As(err, &claimed)
}

// lead connects to a cluster after its identity was checked: it must be the cluster that contains
// the rolled out objects.
func (t *Cluster) lead(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	_, err := t.visitor.Enter(ctx, config, func(ctx context.Context, name string) error {
		if err := t.checkTarget(ctx, name, t.accepted == name); err != nil {
			return fmt.Errorf("%w: remove it there first, or give it up with --confirm-target-change=%s", err, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.link.Lead(config)
}

// ConfigFor returns the client configuration for a job in the target cluster. In the host (a nil
// Cluster) the job has its own identity; elsewhere it uses the kubeconfig.
func (t *Cluster) ConfigFor(j serviceaccounts.Job, accounts *serviceaccounts.Accounts) *rest.Config {
	if t == nil {
		return accounts.ConfigFor(j)
	}
	return t.Config(j.Name)
}

// HostJobs returns the jobs that run in the host. With another target cluster, the engine needs no
// rights in the host.
func (t *Cluster) HostJobs() []serviceaccounts.Job {
	if t == nil {
		return serviceaccounts.Jobs()
	}
	return slices.DeleteFunc(serviceaccounts.Jobs(), func(j serviceaccounts.Job) bool { return j.Name == serviceaccounts.Engine().Name })
}

// Name returns the name that requesters need the right to use, empty for the host.
func (t *Cluster) Name() string {
	if t == nil {
		return ""
	}
	return v1alpha1.DefaultTarget
}

// CheckHost returns an error if chains have objects in another cluster. So a missing flag does not
// create the objects again in the host. accept is the value of Options.Accept.
func CheckHost(ctx context.Context, inventories *chain.Inventories, accept string) error {
	err := inventories.CheckTarget(ctx, "", accept == acceptHost)
	var elsewhere *chain.OtherTargetError
	if errors.As(err, &elsewhere) {
		return fmt.Errorf("%w: give --target-kubeconfig, or give it up with --confirm-target-change=%s", err, acceptHost)
	}
	return err
}

// acceptHost is the value of --confirm-target-change for the host.
const acceptHost = "host"
