package server

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
	"github.com/penstock-project/penstock/pkg/server/storeguard"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/target"
)

const (
	// targetLook is how often the kubeconfig is read; targetRetry is how long to
	// wait for the next try to reach the cluster, doubling up to targetRetryMax.
	targetLook     = 2 * time.Second
	targetRetry    = time.Second
	targetRetryMax = 10 * time.Second
	// targetTimeout bounds one try.
	targetTimeout = 10 * time.Second
)

// targetCluster is the cluster that revisions are rolled out into when it is not the host
// (--target-kubeconfig). Nothing reaches it before it was found to be the one that
// the store knows, and to be ours; until then, all that is asked of it fails with
// the reason, as when it cannot be reached.
type targetCluster struct {
	// file has the kubeconfig.
	file string
	// accepted names a cluster that a person decided for, see --accept-target.
	accepted string
	visitor  target.Visitor
	// aim records which cluster the inventories are about.
	aim  func(ctx context.Context, cluster string, forget bool) error
	link *kubeconfig.Link
	look time.Duration
}

// newTargetCluster reads the kubeconfig: one that is no good ends the start, when somebody
// looks; one that gets so later is told in status.
func newTargetCluster(o *Options, host *host, db *database, decision storeguard.Decision) (*targetCluster, error) {
	if o.TargetKubeconfig == "" {
		return nil, nil
	}
	t := &targetCluster{
		file: o.TargetKubeconfig, accepted: o.AcceptTarget, visitor: newVisitor(host, decision),
		aim:  chain.NewInventories(db.client, storagePrefix).Aim,
		link: kubeconfig.NewLink(), look: targetLook,
	}
	_, _, err := t.read()
	return t, err
}

// newVisitor makes who asks clusters which they are.
func newVisitor(host *host, decision storeguard.Decision) target.Visitor {
	return target.Visitor{Store: decision.Identity.ID, UserAgent: host.userAgent("target")}
}

// config is for clients of the target cluster.
func (t *targetCluster) config(host *host, component string) *rest.Config {
	config := t.link.Config()
	config.UserAgent = host.userAgent(component)
	return config
}

func (t *targetCluster) read() ([]byte, *rest.Config, error) {
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

// run leads the link to where the file says, and follows the file, until ctx ends.
func (t *targetCluster) run(ctx context.Context) {
	log := klog.FromContext(ctx).WithName("target")
	ctx = klog.NewContext(ctx, log)
	var used []byte
	wait, told := targetRetry, ""
	for {
		raw, config, err := t.read()
		switch {
		case err == nil && used != nil && bytes.Equal(raw, used):
			wait = t.look
		case err == nil:
			err = t.lead(ctx, config)
			if err == nil {
				used, wait, told = raw, t.look, ""
				log.Info("Rolling out into another cluster", "server", config.Host)
			}
		}
		if err != nil && ctx.Err() == nil {
			wait = min(2*wait, targetRetryMax)
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

// stays says what becomes of the kubeconfig before.
func stays(inUse bool) string {
	if inUse {
		return "stays in use"
	}
	return "none is in use: nothing is rolled out"
}

// misled is true when the kubeconfig leads to a cluster that is not the one that is
// meant: then nothing is done in either. While it is only not known where it leads,
// the way in use stays: what is wrong with it, the cluster says by itself.
func misled(err error) bool {
	var elsewhere *chain.AimedElsewhereError
	var claimed *target.ClaimedError
	return errors.As(err, &elsewhere) || errors.As(err, &claimed)
}

// lead goes to a cluster once it is found to be the one that is meant: what is known
// to have been rolled out is there.
func (t *targetCluster) lead(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, targetTimeout)
	defer cancel()
	_, err := t.visitor.Enter(ctx, config, func(ctx context.Context, name string) error {
		if err := t.aim(ctx, name, t.accepted == name); err != nil {
			return fmt.Errorf("%w: remove it there first, or give it up with --accept-target=%s", err, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return t.link.Lead(config)
}

// targetConfig is for a job that is done in the cluster that revisions are rolled out
// into: in a name of its own in the host, and as the kubeconfig says elsewhere.
func (c *ExtraConfig) targetConfig(j serviceaccounts.Job) *rest.Config {
	if c.target == nil {
		return c.accounts.ConfigFor(j)
	}
	return c.target.config(c.host, j.Name)
}

// hostJobs are those that are done in the host: nobody needs the rights there to write
// what revisions say somewhere else.
func (c *ExtraConfig) hostJobs() []serviceaccounts.Job {
	if c.target == nil {
		return serviceaccounts.Jobs()
	}
	return slices.DeleteFunc(serviceaccounts.Jobs(), func(j serviceaccounts.Job) bool { return j.Name == serviceaccounts.Engine().Name })
}

// targetName is what requesters need the right to use, empty for the host.
func (c *ExtraConfig) targetName() string {
	if c.target == nil {
		return ""
	}
	return v1alpha1.DefaultTarget
}

// aimAtHost makes sure that what was rolled out into another cluster is not made
// anew in the host because a flag is missing.
func aimAtHost(ctx context.Context, o *Options, db *database) error {
	err := chain.NewInventories(db.client, storagePrefix).Aim(ctx, "", o.AcceptTarget == acceptHost)
	var elsewhere *chain.AimedElsewhereError
	if errors.As(err, &elsewhere) {
		return fmt.Errorf("%w: give --target-kubeconfig, or give it up with --accept-target=%s", err, acceptHost)
	}
	return err
}

// acceptHost is the value of --accept-target for the host.
const acceptHost = "host"
