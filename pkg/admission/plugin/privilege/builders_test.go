package privilege

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// The helpers of this package's tests.

type fields = map[string]any

func object(t testing.TB, apiVersion, kind, namespace, name string, more fields) manifest.Object {
	t.Helper()
	metadata := fields{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	body := fields{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range more {
		body[key] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	made, err := manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}.FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func deployment(t testing.TB, name string) manifest.Object {
	return object(t, "apps/v1", "Deployment", "lighthouse", name, nil)
}

func configMap(t testing.TB, name, value string) manifest.Object {
	return object(t, "v1", "ConfigMap", "lighthouse", name, fields{"data": fields{"k": value}})
}

func clusterRole(t testing.TB, name string, rules ...rbacv1.PolicyRule) manifest.Object {
	return object(t, "rbac.authorization.k8s.io/v1", "ClusterRole", "", name, fields{"rules": rules})
}

func clusterRoleBinding(t testing.TB, name, role string) manifest.Object {
	return object(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", name, fields{
		"roleRef": fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
	})
}

func rule(verbs, groups, resources string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: strings.Split(groups, ","), Resources: strings.Split(resources, ","), ResourceNames: names,
	}
}

// revision is a revision with its manifests.
type revision struct {
	olm.ClusterExtensionRevision
	objects []manifest.Object
}

// rev returns the revision lighthouse-<number>.
func rev(number int64, objects ...manifest.Object) *revision {
	r := &revision{objects: objects}
	r.Name, r.UID = olm.RevisionName("lighthouse", number), types.UID(fmt.Sprint("uid-", number))
	r.Spec.Revision, r.Spec.LifecycleState = number, olm.LifecycleStateActive
	phase := olm.RevisionPhase{Name: "all"}
	for _, o := range objects {
		phase.Objects = append(phase.Objects, olm.RevisionObject{
			APIVersion: o.APIVersion(), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Digest: string(o.Digest),
		})
	}
	r.Spec.Phases = []olm.RevisionPhase{phase}
	return r
}

func (r *revision) as(state olm.LifecycleState) *revision {
	changed := &revision{ClusterExtensionRevision: *r.DeepCopy(), objects: r.objects}
	changed.Spec.LifecycleState = state
	return changed
}

func (r *revision) annotated(key, value string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, key, value)
	return changed
}

// ownedBy returns a copy with an owner of the given name.
func (r *revision) ownedBy(name string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.OwnerReferences = []metav1.OwnerReference{{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: name, UID: types.UID("uid of " + name)}}
	return changed
}

func (r *revision) orphaning() *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Spec.TeardownPolicy = olm.TeardownPolicyOrphan
	return changed
}

func (r *revision) successful() *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}}
	return changed
}

func (r *revision) rollingBack(minutes int32) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Spec.OnFailure, changed.Spec.ProgressDeadlineMinutes = olm.OnFailureRollback, minutes
	return changed
}

// soaking returns a copy with the given successDelaySeconds.
func (r *revision) soaking(seconds int32) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Spec.SuccessDelaySeconds = seconds
	return changed
}

func (r *revision) measured(names ...string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Spec.MetricChecks = names
	return changed
}

func (r *revision) rollbackOf(name string) *revision {
	r.Annotations = map[string]string{v1alpha1.RollbackOfAnnotation: name}
	return r
}

func (r *revision) deleting() *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	changed.Finalizers = []string{v1alpha1.TeardownFinalizer}
	return changed
}

func (r *revision) released() *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Finalizers = nil
	return changed
}

func (r *revision) acknowledging(names string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Annotations = map[string]string{v1alpha1.AllowCRDDeletionAnnotation: names}
	return changed
}

// taking returns a copy that may take protected objects of the named extensions.
func (r *revision) taking(extensions string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Annotations = map[string]string{v1alpha1.TakeOverFromAnnotation: extensions}
	return changed
}

// answering returns a copy that acknowledges a deletion.
func (r *revision) answering(token string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Annotations = map[string]string{v1alpha1.AcknowledgeDeletionAnnotation: token}
	return changed
}

// releasing returns a copy that ends the hold of a rollback.
func (r *revision) releasing(rollback string) *revision {
	changed := r.as(r.Spec.LifecycleState)
	changed.Annotations = map[string]string{v1alpha1.ReleaseHoldAnnotation: rollback}
	return changed
}

// situation simulates the cluster and the store.
type situation struct {
	// target is empty for the host.
	target    string
	t         testing.TB
	stored    []*revision
	inventory []chain.Entry
	// together are revisions of the same import.
	together []*olm.ClusterExtensionRevision
	// borrowed are manifests that the request names by digest only.
	borrowed map[manifest.Digest]string
	// rights of alice by namespace; "" means all namespaces.
	rights map[string][]rbacv1.PolicyRule
	// crds are kinds in addition to the built-in kinds.
	crds map[string][]metav1.APIResource
	// roles of the cluster by kind, namespace and name.
	roles map[string][]rbacv1.PolicyRule
	// aggregated are names of roles with an aggregation rule.
	aggregated map[string]bool
	// failure is the answer to every check except the check of the bypass. dead is the answer to
	// every check.
	failure, dead error
	noDiscovery   error

	mu    sync.Mutex
	asked []authz.Right
	// discoveries and lookups count the requests for discovery and for roles.
	discoveries, lookups int
	// open is the number of concurrent checks, and most its maximum.
	open, most int
	slow       time.Duration
}

// newSituation returns a situation in which alice can read the store and has no other rights.
func newSituation(t testing.TB) *situation {
	return emptyCluster(t).may("", rule("get", "olm.operatorframework.io", "clusterextensionrevisions,clusterextensionrevisions/manifests"),
		rule("get", "rbac.authorization.k8s.io", "roles,clusterroles"))
}

func emptyCluster(t testing.TB) *situation {
	return &situation{t: t, rights: map[string][]rbacv1.PolicyRule{}, roles: map[string][]rbacv1.PolicyRule{}, crds: map[string][]metav1.APIResource{}}
}

// may gives alice rights in a namespace, or in all namespaces.
func (w *situation) may(namespace string, rules ...rbacv1.PolicyRule) *situation {
	w.rights[namespace] = append(w.rights[namespace], rules...)
	return w
}

func (w *situation) holds(revisions ...*revision) *situation {
	w.stored = append(w.stored, revisions...)
	return w
}

// has adds objects to the cluster, with the content of a revision.
func (w *situation) has(number int64, objects ...manifest.Object) *situation {
	for _, o := range objects {
		w.inventory = append(w.inventory, chain.Entry{
			Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: "there", Digest: o.Digest, Revision: number,
		})
	}
	return w
}

// borrow sets the manifests that were found in another revision.
func (w *situation) borrow(revision string, objects ...manifest.Object) {
	w.borrowed = map[manifest.Digest]string{}
	for _, o := range objects {
		w.borrowed[o.Digest] = revision
	}
}

// beside sets the other revisions of the same import.
func (w *situation) beside(revisions ...*revision) {
	for _, r := range revisions {
		w.together = append(w.together, &r.ClusterExtensionRevision)
	}
}

func (w *situation) plugin() *Plugin {
	p := New()
	p.SetDeps(Deps{Authorizer: w, Kinds: w, Roles: w, Chains: w, Target: w.target})
	if err := p.ValidateInitialization(); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// Authorize decides like RBAC.
func (w *situation) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	q := authz.Right{Verb: a.GetVerb(), Group: a.GetAPIGroup(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Namespace: a.GetNamespace(), Name: a.GetName()}
	if !a.IsResourceRequest() {
		q = authz.Right{Verb: a.GetVerb(), Path: a.GetPath()}
	}
	w.begin(q)
	defer w.end()
	if w.slow > 0 {
		select {
		case <-time.After(w.slow):
		case <-ctx.Done():
			return authorizer.DecisionNoOpinion, "", ctx.Err()
		}
	}
	if w.dead != nil || w.failure != nil && q.Verb != "bypass" {
		return authorizer.DecisionNoOpinion, "", fmt.Errorf("%w%w", orNothing(w.dead), orNothing(w.failure))
	}
	if a.GetUser().GetName() != "alice" {
		return authorizer.DecisionNoOpinion, "", nil
	}
	atom := rbacv1.PolicyRule{Verbs: []string{q.Verb}}
	switch {
	case q.Path != "":
		atom.NonResourceURLs = []string{q.Path}
	default:
		atom.APIGroups, atom.Resources = []string{q.Group}, []string{q.Resource}
		if q.Subresource != "" {
			atom.Resources[0] += "/" + q.Subresource
		}
		if q.Name != "" {
			atom.ResourceNames = []string{q.Name}
		}
	}
	owned := w.rights[""]
	if q.Namespace != "" {
		owned = append(owned[:len(owned):len(owned)], w.rights[q.Namespace]...)
	}
	if covered, _ := validation.Covers(owned, []rbacv1.PolicyRule{atom}); covered {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (w *situation) begin(q authz.Right) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, q)
	w.open++
	w.most = max(w.most, w.open)
}

func (w *situation) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open--
}

func orNothing(err error) error {
	if err == nil {
		return errNothing{}
	}
	return err
}

type errNothing struct{}

func (errNothing) Error() string { return "" }

// ServerResourcesForGroupVersionWithContext implements Kinds.
func (w *situation) ServerResourcesForGroupVersionWithContext(_ context.Context, groupVersion string) (*metav1.APIResourceList, error) {
	w.mu.Lock()
	w.discoveries++
	w.mu.Unlock()
	if w.noDiscovery != nil {
		return nil, w.noDiscovery
	}
	resources, ok := map[string][]metav1.APIResource{
		"v1": {
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "namespaces", Kind: "Namespace"},
			{Name: "namespaces/status", Kind: "Namespace"}, {Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "pods/eviction", Kind: "Eviction", Namespaced: true},
		},
		"apps/v1": {{Name: "deployments", Kind: "Deployment", Namespaced: true}, {Name: "deployments/scale", Kind: "Scale", Namespaced: true}},
		"rbac.authorization.k8s.io/v1": {
			{Name: "clusterroles", Kind: "ClusterRole"}, {Name: "clusterrolebindings", Kind: "ClusterRoleBinding"},
			{Name: "roles", Kind: "Role", Namespaced: true}, {Name: "rolebindings", Kind: "RoleBinding", Namespaced: true},
		},
		"apiextensions.k8s.io/v1":         {{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}},
		"certificates.k8s.io/v1":          {{Name: "certificatesigningrequests", Kind: "CertificateSigningRequest"}},
		"certificates.k8s.io/v1beta1":     {{Name: "clustertrustbundles", Kind: "ClusterTrustBundle"}},
		"admissionregistration.k8s.io/v1": {{Name: "validatingadmissionpolicies", Kind: "ValidatingAdmissionPolicy"}, {Name: "validatingadmissionpolicybindings", Kind: "ValidatingAdmissionPolicyBinding"}},
	}[groupVersion]
	resources = append(resources, w.crds[groupVersion]...)
	if !ok && len(resources) == 0 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, groupVersion)
	}
	return &metav1.APIResourceList{APIResources: resources}, nil
}

// ServerGroupsWithContext implements Kinds, for the groups of custom resources.
func (w *situation) ServerGroupsWithContext(context.Context) (*metav1.APIGroupList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discoveries++
	if w.noDiscovery != nil {
		return nil, w.noDiscovery
	}
	list := &metav1.APIGroupList{}
	for text := range w.crds {
		group, version, _ := strings.Cut(text, "/")
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{{GroupVersion: text, Version: version}}})
	}
	return list, nil
}

// Role implements Roles.
func (w *situation) Role(_ context.Context, kind, namespace, name string) (*Role, error) {
	w.lookups++
	rules, ok := w.roles[kind+" "+namespace+"/"+name]
	if !ok {
		return nil, nil
	}
	return &Role{Rules: rules, Aggregated: w.aggregated[name]}, nil
}

// Revisions implements Chains.
func (w *situation) Revisions(_ context.Context, name string) ([]olm.ClusterExtensionRevision, error) {
	var out []olm.ClusterExtensionRevision
	for _, r := range w.stored {
		if chain, _, _ := olm.ChainOf(r.Name); chain == name {
			out = append(out, r.ClusterExtensionRevision)
		}
	}
	return out, nil
}

// Contents implements Chains.
func (w *situation) Contents(_ context.Context, r *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	for _, stored := range w.stored {
		if stored.Name == r.Name {
			return stored.objects, nil
		}
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("%s is not stored", r.Name))
}

// Inventory implements Chains.
func (w *situation) Inventory(context.Context, string) (chain.Inventory, error) {
	return chain.Inventory{Entries: w.inventory}, nil
}

func alice() user.Info { return &user.DefaultInfo{Name: "alice", Groups: []string{"devs"}} }

// attributes returns the attributes of a request of alice.
func attributes(operation admission.Operation, updated, old *revision, subresource string) admission.Attributes {
	name := ""
	record := func(r *revision) *olm.ClusterExtensionRevision {
		if r == nil {
			return nil
		}
		name = r.Name
		return &r.ClusterExtensionRevision
	}
	was, is := record(old), record(updated)
	kind, resource := v1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRevision"), v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions")
	switch {
	case is == nil:
		return admission.NewAttributesRecord(nil, was, kind, "", name, resource, subresource, operation, nil, false, alice())
	case was == nil:
		return admission.NewAttributesRecord(is, nil, kind, "", name, resource, subresource, operation, nil, false, alice())
	default:
		return admission.NewAttributesRecord(is, was, kind, "", name, resource, subresource, operation, nil, false, alice())
	}
}

func (w *situation) creates(r *revision) error {
	ctx := request.WithBorrowed(request.WithManifests(w.t.Context(), r.objects), w.borrowed)
	return w.plugin().Validate(request.WithBeside(ctx, w.together), attributes(admission.Create, r, nil, ""), nil)
}

func (w *situation) updates(old, updated *revision) error {
	return w.plugin().Validate(w.t.Context(), attributes(admission.Update, updated, old, ""), nil)
}

func (w *situation) deletes(r *revision) error {
	return w.plugin().Validate(w.t.Context(), attributes(admission.Delete, nil, r, ""), nil)
}

// want checks the code of an answer and the texts that it must contain.
func want(t *testing.T, reason string, err error, code int32, texts ...string) {
	t.Helper()
	if code == 0 {
		if err != nil {
			t.Errorf("%s: refused: %v", reason, err)
		}
		return
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Code != code {
		t.Errorf("%s: got %v, want code %d", reason, err, code)
		return
	}
	for _, text := range texts {
		if not, found := strings.CutPrefix(text, "!"); found {
			if strings.Contains(err.Error(), not) {
				t.Errorf("%s: the answer says %q: %v", reason, not, err)
			}
			continue
		}
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the answer does not say %q: %v", reason, text, err)
		}
	}
}
