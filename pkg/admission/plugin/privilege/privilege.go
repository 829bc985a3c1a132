// Package privilege is the admission plugin that limits requesters to their own rights. Penstock
// applies objects with its own, wide rights. Without this check, the right to create a revision
// would give every right.
//
// The plugin first computes the effect of a change (plan.go), then the rights that the effect needs
// (demand.go), and then asks the cluster whether the requester has them. Without an answer it
// refuses. docs/reference/privileges.md lists the rights, and the limits of the check.
package privilege

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/fairshare"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/text"
)

const (
	// PluginName is the name for --disable-admission-plugins.
	PluginName = "Privilege"

	// DefaultTimeout bounds the check of one request.
	DefaultTimeout = 30 * time.Second

	// requestConcurrency bounds the concurrent authorization checks of one request, and
	// totalConcurrency the checks of all requests together.
	requestConcurrency = 16
	totalConcurrency   = 64
)

// Deps are the dependencies of the plugin.
type Deps struct {
	// Authorizer checks the rights of users in the target cluster. It must not cache an answer for
	// longer than a revoked right may stay effective.
	Authorizer authorizer.UnconditionalAuthorizer
	// Target names the cluster to which Penstock writes if it is not the host. Requesters then need
	// only the right to use it (see authz.Use). The target of a revision comes first.
	Target string
	// Kinds returns the resources of that cluster.
	Kinds Kinds
	// Roles reads the roles of that cluster.
	Roles Roles
	// Chains reads the stored chains.
	Chains Chains
	// Metrics counts decisions; nil counts nothing.
	Metrics *Metrics
	// Timeout bounds one request; 0 is DefaultTimeout.
	Timeout time.Duration
}

// Kinds is discovery.
type Kinds interface {
	// ServerResourcesForGroupVersionWithContext returns the resources of a group version, "v1" or
	// "apps/v1". It returns a NotFound error if the cluster does not serve it.
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
	// ServerGroupsWithContext returns the groups that are served, with their versions.
	ServerGroupsWithContext(ctx context.Context) (*metav1.APIGroupList, error)
}

// Roles reads roles of the cluster.
type Roles interface {
	// Role returns a Role or ClusterRole, or nil if it does not exist.
	Role(ctx context.Context, kind, namespace, name string) (*Role, error)
}

// Role has the rules that a role of the cluster grants.
type Role struct {
	Rules []rbacv1.PolicyRule
	// Aggregated is true if the rules are gathered from other roles and follow their changes.
	Aggregated bool
}

// Chains reads the stored state of chains.
type Chains interface {
	// Revisions returns the current revisions of a chain. Callers must not change them.
	Revisions(ctx context.Context, chain string) ([]olm.ClusterExtensionRevision, error)
	// Contents returns the manifests of a stored revision, in rollout order.
	Contents(ctx context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error)
	// Inventory returns the objects that a chain has in the cluster.
	Inventory(ctx context.Context, chain string) (chain.Inventory, error)
}

// Plugin is the admission plugin. It needs SetDeps before it is used.
type Plugin struct {
	*admission.Handler
	deps   Deps
	asking *fairshare.Pool
	turns  turns
}

var (
	_ admission.ValidationInterface     = &Plugin{}
	_ admission.InitializationValidator = &Plugin{}
)

// New returns the plugin.
func New() *Plugin {
	return &Plugin{
		Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete),
		asking:  fairshare.NewPool(totalConcurrency),
		turns:   turns{users: map[string]*turn{}},
	}
}

// SetDeps sets the dependencies of the plugin.
func (p *Plugin) SetDeps(deps Deps) {
	if deps.Timeout == 0 {
		deps.Timeout = DefaultTimeout
	}
	p.deps = deps
}

// ValidateInitialization returns an error that names a missing dependency.
func (p *Plugin) ValidateInitialization() error {
	if p.deps.Authorizer == nil || p.deps.Kinds == nil || p.deps.Roles == nil || p.deps.Chains == nil {
		return fmt.Errorf("admission plugin %s was given no authorizer, kinds, roles or chains", PluginName)
	}
	return nil
}

// Validate admits a request if the requester can make its change:
//
//  1. Only Penstock can write status.
//  2. A request that changes nothing in the cluster needs no check.
//  3. Requests of Penstock itself are exempt.
//  4. A requester with the right to bypass needs no other right.
//  5. Any other requester needs all rights of the change.
//  6. The requester, the audit log and the metrics get the decision.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if isRevisionResource(a) && a.GetSubresource() == "status" && !request.IsInternal(ctx, a.GetUserInfo()) {
		return admission.NewForbidden(a, errors.New(statusRefusal))
	}
	c, ok := changeOf(a, request.LeavesOrphans(ctx))
	if !ok {
		return nil
	}
	if request.IsInternal(ctx, a.GetUserInfo()) {
		p.deps.Metrics.decided(c.kind, exempt)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.deps.Timeout)
	defer cancel()
	i := &inquiry{authorizer: p.deps.Authorizer, who: a.GetUserInfo(), asking: p.asking, answers: request.AnswersFrom(ctx)}
	verdict, refused, err := p.judgeInTurn(ctx, c, i)
	p.record(a, c, i, verdict)
	switch {
	case err != nil:
		return p.answer(ctx, a, err)
	case verdict == denied:
		return admission.NewForbidden(a, refused)
	default:
		return nil
	}
}

// statusRefusal applies to every user, because status makes Penstock delete objects without a check
// of rights. A revision that has Succeeded is a rollback target and archives the revisions before
// it. A stage that is reached takes objects from earlier revisions.
const statusRefusal = "status of a revision is the record of what was rolled out, by which objects are deleted: nobody but Penstock writes it"

// judgeInTurn waits for the requester's turn and calls judge.
func (p *Plugin) judgeInTurn(ctx context.Context, c change, i *inquiry) (verdict decision, refused, err error) {
	done, err := p.turns.take(ctx, i.who.GetName())
	if err != nil {
		return failed, nil, err
	}
	defer done()
	return p.judge(ctx, c, i)
}

// judge decides whether the requester can make the change. refused has the missing rights. err is
// the reason why the decision is unknown.
func (p *Plugin) judge(ctx context.Context, c change, i *inquiry) (verdict decision, refused, err error) {
	bypass := authz.Bypass(c.chain)
	others := c.bypasses()
	if err := i.all(ctx, append([]authz.Right{bypass}, others...)); err != nil {
		return failed, nil, err
	}
	// The right to bypass is for one extension, and gives no right on another.
	if lacking := slices.DeleteFunc(others, i.may); len(lacking) > 0 {
		var missing []string
		for _, r := range lacking {
			missing = append(missing, ask{Right: r, because: "for " + v1alpha1.TakeOverFromAnnotation}.String())
		}
		return denied, refusal(i.who, missing, 0, false), nil
	}
	if i.may(bypass) {
		return bypassed, nil, nil
	}
	d, err := p.demandOf(ctx, c, i.who)
	if err != nil {
		return failed, nil, err
	}
	s := &search{inquiry: i, cluster: p.deps.Kinds, roles: p.deps.Roles, demand: d}
	if err := s.run(ctx); err != nil {
		return failed, nil, err
	}
	if !s.refused() {
		return allowed, nil, nil
	}
	missing, untold, err := s.told(ctx)
	if err != nil {
		return failed, nil, err
	}
	return denied, refusal(i.who, missing, untold, s.partial), nil
}

// record records a decision in the metrics and the audit log.
func (p *Plugin) record(a admission.Attributes, c change, i *inquiry, verdict decision) {
	p.deps.Metrics.decided(c.kind, verdict)
	p.deps.Metrics.asked(i.count())
	// A second run for the same request (after a conflict in the store) may have another decision.
	// The audit log then keeps the annotation of the first run, and the answer has the second
	// decision.
	_ = a.AddAnnotation("privilege.policy.penstock.dev/decision", string(verdict))
}

// answer converts an error of the check to an API error.
func (p *Plugin) answer(ctx context.Context, a admission.Attributes, err error) error {
	var many *tooManyError
	var unreadable *unreadableError
	var scopes *scopeError
	switch {
	case apierrors.IsTooManyRequests(err):
		return err
	case errors.As(err, &scopes):
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), scopes.fields)
	case errors.As(err, &many), errors.As(err, &unreadable):
		return admission.NewForbidden(a, fmt.Errorf("your rights cannot be checked: %w; with the right to bypass privilegechecks.policy.penstock.dev, they need not be", err))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return apierrors.NewServiceUnavailable(fmt.Sprintf("your rights could not be checked within %s: %s", p.deps.Timeout, err))
	default:
		return authz.Unknown(err)
	}
}

// refusal returns the error that lists the missing rights. If partial is true, the checks stopped
// early and the list is incomplete.
func refusal(who user.Info, missing []string, untold int, partial bool) error {
	listed := slices.Clone(missing[:min(len(missing), maxMissing)])
	switch rest := len(missing) - len(listed); {
	case rest > 0 && partial:
		listed = append(listed, "and more")
	case rest > 0:
		listed = append(listed, fmt.Sprintf("and %d more", rest))
	case partial && len(listed) > 0:
		listed = append(listed, "and perhaps more, which was not checked")
	}
	var lacks []string
	if len(listed) > 0 {
		lacks = append(lacks, "cannot "+strings.Join(listed, "; "))
	}
	switch {
	case untold > 0 && partial:
		lacks = append(lacks, fmt.Sprintf("lacks at least %s on objects that they cannot read", text.Count(untold, "right")))
	case untold > 0:
		lacks = append(lacks, fmt.Sprintf("lacks %s on objects that they cannot read", text.Count(untold, "right")))
	}
	return fmt.Errorf(authz.Refusal+": %s %s", who.GetName(), strings.Join(lacks, ", and "))
}
