package clusterreads

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff/live"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionobjects"
	rev "github.com/penstock-project/penstock/pkg/revision"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
)

func (r *Reads) newLive() (liveAnywhere, error) {
	here := cluster{
		config: r.Target.ConfigFor(serviceaccounts.Reader(), r.Accounts), rights: r.Authorizer,
		who: r.Accounts.User(serviceaccounts.Reader()), role: r.Accounts.Remedy(serviceaccounts.Reader()),
		work: func(ctx context.Context, revision *hub.ClusterExtensionRevision) (rollout.Work, int64, error) {
			return r.previewWork(ctx, revision, "")
		},
	}
	if r.Target != nil {
		elsewhere, err := newTargetRights(r.Authorizer, v1alpha1.DefaultTarget, here.config)
		if err != nil {
			return liveAnywhere{}, err
		}
		here.rights, here.who, here.role = elsewhere, elsewhere.self, "give the user of --target-kubeconfig the rights that docs/how-to/target-cluster.md lists"
	}
	upgrades, err := newUpgrades(here)
	if err != nil {
		return liveAnywhere{}, err
	}
	r.Upgrade = upgrades.Upgrade
	made, err := r.newLiveIn(here)
	return liveAnywhere{Reads: r, here: made}, err
}

type cluster struct {
	config *rest.Config
	// rights decides which objects users may see there. who is the user that reads the cluster.
	// role is advice about giving who its rights, for messages.
	rights authorizer.UnconditionalAuthorizer
	who    user.Info
	role   string
	work   live.Work
}

func (r *Reads) newLiveIn(c cluster) (*live.Live, error) {
	targetClient, err := targetclient.New(targetclient.Options{Config: c.config, Redactor: r.Redactor})
	if err != nil {
		return nil, fmt.Errorf("making a client for live diffs: %w", err)
	}
	return live.New(live.Deps{
		Authorizer: c.rights,
		Previewer:  preview.New(preview.Options{Reader: targetClient, Trier: targetClient, Names: rev.Names(), Parallel: previewsAtOnce}),
		Kinds:      targetClient,
		Work:       c.work,
		Reader:     c.who,
		Role:       c.role,
		Objects:    targetClient,
		Redactor:   r.Redactor,
		Clock:      clock.RealClock{},
	}), nil
}

const previewsAtOnce = 16

// previewWork returns the engine's work for rolling out one revision into a cluster, and the
// version of the inventory that it used. An empty cluster is the default target.
func (r *Reads) previewWork(ctx context.Context, revision *hub.ClusterExtensionRevision, cluster string) (rollout.Work, int64, error) {
	name, _, ok := hub.ChainOf(revision.Name)
	if !ok {
		return rollout.Work{}, 0, fmt.Errorf("%q is not the name of a revision", revision.Name)
	}
	stored, version, err := r.Inventories.Load(ctx, name)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	if err := rev.CheckCluster(stored, cluster); err != nil {
		return rollout.Work{}, 0, err
	}
	all, err := r.Chain(ctx, name)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	others, err := rev.FromHub(all...)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	one, err := rev.FromHub(*revision)
	if err != nil {
		return rollout.Work{}, 0, err
	}
	work, err := rev.PreviewWork(name, &one[0], others, stored)
	return work, version, err
}

type liveAnywhere struct {
	*Reads
	here *live.Live
}

var (
	_ revisiondiff.Live    = liveAnywhere{}
	_ revisionobjects.Live = liveAnywhere{}
)

// Preview implements revisiondiff.Live. A user without the right to use the cluster of a Secret
// learns nothing about it, not even whether it exists.
func (l liveAnywhere) Preview(ctx context.Context, question revisiondiff.LiveQuestion) (revisiondiff.Preview, error) {
	there, err := l.in(ctx, question.Revision, "what a rollout would change")
	switch {
	case err != nil:
		return revisiondiff.Preview{}, err
	case there == nil:
		return revisiondiff.Preview{Withheld: len(question.Manifests)}, nil
	}
	return there.Preview(ctx, question)
}

// Objects implements revisionobjects.Live, in the same way.
func (l liveAnywhere) Objects(ctx context.Context, revision *hub.ClusterExtensionRevision) (*v1alpha1.RevisionObjects, error) {
	there, err := l.in(ctx, revision, "how the objects are")
	switch {
	case err != nil:
		return nil, err
	case there == nil:
		withheld := 0
		for _, phase := range revision.Spec.Phases {
			withheld += len(phase.Objects)
		}
		return &v1alpha1.RevisionObjects{ObjectMeta: metav1.ObjectMeta{Name: revision.Name}, Withheld: int32(withheld)}, nil
	}
	return there.Objects(ctx, revision)
}

// in returns the reader of a revision's cluster, or nil when the caller cannot use it.
func (l liveAnywhere) in(ctx context.Context, revision *hub.ClusterExtensionRevision, what string) (*live.Live, error) {
	secret := revision.Target()
	if secret == "" {
		return l.here, nil
	}
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("the request has no user"))
	}
	switch allowed, err := authz.Use(secret).Has(ctx, l.Authorizer, caller); {
	case allowed:
	case err != nil:
		return nil, apierrors.NewServiceUnavailable("asking what you may do: " + err.Error())
	default:
		return nil, nil
	}
	client, err := l.TargetClients.to(ctx, secret)
	if err == nil {
		client.once.Do(func() { client.live, client.err = l.into(client, secret) })
		err = client.err
	}
	if err != nil {
		return nil, apierrors.NewServiceUnavailable(what + " now is not known: " + err.Error())
	}
	return client.live, nil
}

func (l liveAnywhere) into(client *targetClient, secret string) (*live.Live, error) {
	rights, err := newTargetRights(l.Authorizer, secret, client.config)
	if err != nil {
		return nil, err
	}
	return l.newLiveIn(cluster{
		config: client.config, rights: rights, who: rights.self,
		role: "give the user of its kubeconfig the rights that docs/how-to/target-cluster.md lists",
		work: func(ctx context.Context, revision *hub.ClusterExtensionRevision) (rollout.Work, int64, error) {
			return l.previewWork(ctx, revision, client.cluster)
		},
	})
}
