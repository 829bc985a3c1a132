// Package targetadmission knows what in a target cluster may refuse an update besides
// validation: webhooks and policies, by watch; quotas, by watch; and whether we may write at
// all, by asking. It is careful: what it cannot decide counts as a refusal that may come.
//
// It asks nothing before something is installed or the first question comes, and watches from then
// on. Admission that is compiled
// into the API server, or configured by its files, shows nowhere: see rollout.Engine, which stops
// to believe when the server refuses what was certain.
package targetadmission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/right"
	"github.com/penstock-project/penstock/pkg/rollout/accepted"
)

const (
	// believedFor is how long an answer counts that no watch keeps up to date: which kinds of
	// admission are served, and what we may do.
	believedFor = 10 * time.Minute
	// answerWithin is how long the first questions wait for the watches. Whoever has no answer
	// then tries their write.
	answerWithin = 5 * time.Second
)

// Options of an Admission. All are required but Clock, whose default is the real one.
type Options struct {
	// Config of the target cluster, in the name that objects are written in.
	Config *rest.Config
	Clock  clock.PassiveClock
}

// Admission implements rollout.Admission. It may be used by several goroutines.
type Admission struct {
	clock     clock.PassiveClock
	client    kubernetes.Interface
	discovery discovery.DiscoveryInterface
	dynamic   dynamic.Interface
	metadata  metadata.Interface
	news      news

	// prepared is when Prepare last began.
	prepared struct {
		sync.Mutex
		at time.Time
	}

	mu sync.Mutex
	// begin begins a watch that ends with Run; nil when that does not run.
	begin func(watch func(context.Context))
	// served is when it was asked what is served, and groups which groups are.
	served time.Time
	groups map[string]bool
	// user is our name in the cluster.
	user string
	// followed are the kinds of admission that are watched, by resource.
	followed map[schema.GroupVersionResource]*following
	quotas   *quotas
	// rights are what was asked lately.
	rights map[right.Right]answer
}

type answer struct {
	allowed bool
	until   time.Time
}

// New returns an Admission that asks nothing before it is asked, or prepares for that.
func New(o Options) (*Admission, error) {
	if o.Config == nil {
		return nil, errors.New("watching the admission of the target: Config is required")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("watching the admission of the target: %w", err)
	}
	objects, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("watching the admission of the target: %w", err)
	}
	partial, err := metadata.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("watching the admission of the target: %w", err)
	}
	// What is asked is a small part of what the aggregated answer has.
	served := discovery.NewDiscoveryClient(client.Discovery().RESTClient())
	served.UseLegacyDiscovery = true
	return newOf(o.Clock, client, served, objects, partial), nil
}

func newOf(clock clock.PassiveClock, client kubernetes.Interface, served discovery.DiscoveryInterface, objects dynamic.Interface, partial metadata.Interface) *Admission {
	return &Admission{
		clock: clock, client: client, discovery: served, dynamic: objects, metadata: partial,
		followed: map[schema.GroupVersionResource]*following{}, rights: map[right.Right]answer{},
	}
}

// Run keeps the watches until the context ends. Nothing is known before.
func (a *Admission) Run(ctx context.Context) error {
	var watches sync.WaitGroup
	a.mu.Lock()
	a.begin = func(watch func(context.Context)) { watches.Go(func() { watch(ctx) }) }
	a.mu.Unlock()
	<-ctx.Done()
	a.mu.Lock()
	a.begin = nil
	a.mu.Unlock()
	watches.Wait()
	return nil
}

// Prepare implements rollout.Admission. What fails is asked again with the first question, or when
// believedFor is over.
func (a *Admission) Prepare() {
	a.prepared.Lock()
	defer a.prepared.Unlock()
	if at := a.prepared.at; !at.IsZero() && a.clock.Since(at) < believedFor {
		return
	}
	if !a.mu.TryLock() {
		return // somebody is asking
	}
	defer a.mu.Unlock()
	if a.begin == nil {
		return
	}
	a.prepared.at = a.clock.Now()
	a.begin(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, answerWithin)
		defer cancel()
		if _, err := a.ask(ctx, accepted.Verdict{Quota: true}); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("What may refuse an update is not known yet", "reason", err.Error())
		}
	})
}

// Silent implements rollout.Admission.
func (a *Admission) Silent(ctx context.Context, id manifest.ID, update accepted.Verdict) bool {
	known, err := a.known(ctx, update)
	if err != nil {
		return false
	}
	if update.Images && known.groups["image.openshift.io"] || update.Quota && (known.groups["quota.openshift.io"] || known.quotas.limits(id.Namespace)) {
		return false
	}
	for _, kind := range known.followed {
		if kind.concerns(id, update.Resource, known.user) {
			return false
		}
	}
	return true
}

// knowledge is what an answer is made of.
type knowledge struct {
	groups   map[string]bool
	followed []*following
	quotas   *quotas
	user     string
}

// known finds out what an answer needs. An error means that something is not known.
func (a *Admission) known(ctx context.Context, update accepted.Verdict) (knowledge, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	known, err := a.ask(ctx, update)
	if err != nil {
		return knowledge{}, err
	}
	for _, kind := range known.followed {
		if err := kind.wait(ctx, a.clock, &a.news); err != nil {
			return knowledge{}, err
		}
	}
	if update.Quota {
		err = known.quotas.wait(ctx, a.clock, &a.news)
	}
	return known, err
}

// ask asks what was not asked lately, one caller after the other.
func (a *Admission) ask(ctx context.Context, update accepted.Verdict) (knowledge, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.begin == nil {
		return knowledge{}, errors.New("it does not run")
	}
	if a.served.IsZero() || a.clock.Since(a.served) >= believedFor {
		if err := a.look(ctx); err != nil {
			return knowledge{}, err
		}
	}
	for _, needed := range append([]right.Right{{Verb: "patch", Group: "*", Resource: "*"}}, update.Rights...) {
		if err := a.may(ctx, needed); err != nil {
			return knowledge{}, err
		}
	}
	known := knowledge{groups: a.groups, user: a.user}
	for _, kind := range a.followed {
		known.followed = append(known.followed, kind)
	}
	if update.Quota {
		if a.quotas == nil {
			a.quotas = newQuotas(a)
			a.begin(a.quotas.watch.Run)
		}
		known.quotas = a.quotas
	}
	return known, nil
}

// look asks who we are and what is served, and watches what is new of it.
func (a *Admission) look(ctx context.Context) error {
	review, err := a.client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking who we are: %w", err)
	}
	groups, resources, err := served(a.discovery)
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		return errors.New("the cluster serves no kind of admission, which no API server does")
	}
	a.user, a.groups = review.Status.UserInfo.Username, groups
	for _, resource := range resources {
		if a.followed[resource] == nil {
			a.followed[resource] = follow(a, resource)
			a.begin(a.followed[resource].watch.Run)
		}
	}
	a.served = a.clock.Now()
	return nil
}

// may fails when we certainly may not do something, or it is not known.
func (a *Admission) may(ctx context.Context, needed right.Right) error {
	known, found := a.rights[needed]
	if !found || !a.clock.Now().Before(known.until) {
		review, err := a.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: needed.Attributes()},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("asking what we may do: %w", err)
		}
		known = answer{review.Status.Allowed, a.clock.Now().Add(believedFor)}
		a.rights[needed] = known
	}
	if !known.allowed {
		return fmt.Errorf("we may not %s", needed)
	}
	return nil
}
