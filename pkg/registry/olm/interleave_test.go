package olm_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/admission/plugin/privilege"
	"github.com/penstock-project/penstock/pkg/admission/request"
	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/guardedstorage"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionimport"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisionrollback"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// The tests use a chain e with two active revisions. The newer revision is stuck:
//
//	e-1  a, c
//	e-2  b, c
//
// Each user may do everything, except delete objects that are not named in the user's name.

// bench is the registry and the store in memory, with the plugin that checks rights.
type bench struct {
	t           *testing.T
	etcd        *storetest.Memory
	revisions   *clusterextensionrevision.REST
	status      *clusterextensionrevision.StatusREST
	manifests   *clusterextensionrevision.ManifestsREST
	rollback    *revisionrollback.REST
	heads       *chain.Heads
	inventories *chain.Inventories
	imports     *revisionimport.REST
	// reserve makes imports reserve their packs with leases of a real etcd.
	reserve  func(leases pack.Leases)
	plugin   *privilege.Plugin
	digester manifest.Digester
	// text is part of every manifest.
	text string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	memory := storetest.NewMemory()
	return newBenchOn(t, memory, memory)
}

// newBenchOn works like newBench, for a process that reaches a store through its own KV.
func newBenchOn(t *testing.T, memory *storetest.Memory, kv clientv3.KV) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	client := memory.Client(t.Context())
	client.KV = kv
	b := &bench{t: t, etcd: memory, plugin: privilege.New(), digester: manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}}
	b.inventories = chain.NewInventories(kv, prefix)
	config := storagebackend.NewDefaultConfig(prefix, nil)
	options := generic.RESTOptions{
		StorageConfig:  config.ForResource(v1alpha1.Resource("clusterextensionrevisions")),
		ResourcePrefix: "olm.operatorframework.io/clusterextensionrevisions", EnableGarbageCollection: true, DeleteCollectionWorkers: 8,
		// Without a cache, another write can happen before each read.
		Decorator: func(config *storagebackend.ConfigForResource, resourcePrefix string, _ func(runtime.Object) (string, error), newFunc, newList func() runtime.Object,
			_ storage.AttrFunc, _ storage.IndexerFuncs, _ *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return guardedstorage.Raw(client, nil, config, newFunc, newList, resourcePrefix)
		},
	}
	b.heads = chain.NewHeads(kv, prefix)
	stored, err := clusterextensionrevision.NewStorage(clusterextensionrevision.Deps{
		Scheme: scheme, Bodies: pack.New(kv, prefix, b.digester), Heads: b.heads, ChainVersions: chainversion.New(kv, prefix),
		Digester: b.digester, Authorizer: byName{}, Inventories: b.inventories,
		ApplyCheck: allApplies{}, CheckCEL: probe.NewCELChecker(), NameWarning: func() string { return "" }, Shares: plenty(),
		OptsGetter: encoding.Stored{RESTOptionsGetter: options, Codecs: serializer.NewCodecFactory(scheme), Version: v1alpha1.SchemeGroupVersion},
	})
	if err != nil {
		t.Fatal(err)
	}
	b.revisions, b.status, b.manifests = stored.Revision, stored.Status, stored.Manifests
	b.plugin.SetDeps(privilege.Deps{Authorizer: byName{}, Kinds: configMaps{}, Roles: noRoles{}, Chains: b})
	b.rollback = revisionrollback.NewREST(revisionrollback.Deps{
		Revisions: b.revisions, Heads: b.heads, Scheme: scheme, Admission: b.plugin, Authorizer: byName{}, Owners: &owners{}, StoredVersions: storedVersions{},
	})
	imports := revisionimport.Deps{
		Scheme: scheme, Revisions: b.revisions, Heads: b.heads, Histories: noHistories{}, Authorizer: byName{},
		Importer: clusterextensionrevision.NewImporter(b.revisions, scheme, b.plugin), Owners: &owners{},
		Reserve: func(ctx context.Context) (context.Context, func(), error) { return ctx, func() {}, nil },
	}
	b.imports = revisionimport.NewREST(imports)
	b.reserve = func(leases pack.Leases) {
		imports.Reserve = func(ctx context.Context) (context.Context, func(), error) {
			return pack.New(kv, prefix, b.digester).Reserve(ctx, leases)
		}
		b.imports = revisionimport.NewREST(imports)
	}
	return b
}

// Revisions, Contents and Inventory implement privilege.Chains.
func (b *bench) Revisions(ctx context.Context, name string) ([]hub.ClusterExtensionRevision, error) {
	return b.revisions.Chain(ctx, name)
}

func (b *bench) Contents(ctx context.Context, revision *hub.ClusterExtensionRevision) ([]manifest.Object, error) {
	return b.revisions.Contents(ctx, revision)
}

func (b *bench) Inventory(ctx context.Context, name string) (chain.Inventory, error) {
	found, _, err := b.inventories.Load(ctx, name)
	return found, err
}

// byName allows a user everything except two actions. The user must not bypass the check, or delete
// objects that are not named in the user's name.
type byName struct{}

func (byName) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	refused := a.GetVerb() == "bypass" || a.GetVerb() == "delete" && a.GetResource() == "configmaps" && !strings.Contains(a.GetUser().GetName(), a.GetName())
	if refused {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func (r byName) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

type configMaps struct{}

func (configMaps) ServerResourcesForGroupVersionWithContext(context.Context, string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}}}, nil
}

func (configMaps) ServerGroupsWithContext(context.Context) (*metav1.APIGroupList, error) {
	return &metav1.APIGroupList{}, nil
}

type noRoles struct{}

func (noRoles) Role(context.Context, string, string, string) (*privilege.Role, error) {
	return nil, nil
}

// act is a write of a user, as an endpoint performs it.
type act func(b *bench, ctx context.Context) error

func (b *bench) attributes(ctx context.Context, operation admission.Operation, updated, old runtime.Object, name string) admission.Attributes {
	who, _ := genericrequest.UserFrom(ctx)
	return admission.NewAttributesRecord(updated, old, v1alpha1.SchemeGroupVersion.WithKind("ClusterExtensionRevision"), "", name,
		v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"), "", operation, nil, false, who)
}

// revision returns e-<number> with objects of these names.
func (b *bench) revision(number int64, objects string) *hub.ClusterExtensionRevision {
	b.t.Helper()
	revision := &hub.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: hub.RevisionName("e", number)}}
	revision.Spec.Revision, revision.Spec.LifecycleState, revision.Spec.TeardownPolicy = number, hub.LifecycleStateActive, hub.TeardownPolicyDelete
	revision.Spec.CollisionProtection, revision.Spec.OnFailure = hub.CollisionProtectionPrevent, hub.OnFailureNone
	phase := hub.RevisionPhase{Name: "one"}
	for _, name := range objects {
		phase.Objects = append(phase.Objects, hub.RevisionObject{Object: &hub.Manifest{Raw: []byte(toText(configMap(string(name), b.text+"1")))}})
	}
	if objects != "" {
		revision.Spec.Phases = []hub.RevisionPhase{phase}
	}
	return revision
}

func creates(number int64, objects string) act { return createsIn("", number, objects) }

// createsIn works like creates, for the cluster of a Secret.
func createsIn(target string, number int64, objects string) act {
	return func(b *bench, ctx context.Context) error {
		revision := b.revision(number, objects)
		if target != "" {
			revision.Spec.TargetRef = &hub.TargetReference{Name: target}
		}
		_, err := b.revisions.Create(ctx, revision, func(ctx context.Context, obj runtime.Object) error {
			return b.plugin.Validate(ctx, b.attributes(ctx, admission.Create, obj, nil, hub.RevisionName("e", number)), nil)
		}, &metav1.CreateOptions{})
		return err
	}
}

func updates(name string, change func(*hub.ClusterExtensionRevision)) act {
	return func(b *bench, ctx context.Context) error {
		info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			updated := old.DeepCopyObject().(*hub.ClusterExtensionRevision)
			change(updated)
			return updated, nil
		})
		_, _, err := b.revisions.Update(ctx, name, info, rest.ValidateAllObjectFunc, func(ctx context.Context, obj, old runtime.Object) error {
			return b.plugin.Validate(ctx, b.attributes(ctx, admission.Update, obj, old, name), nil)
		}, false, &metav1.UpdateOptions{})
		return err
	}
}

func deletes(name string, policy metav1.DeletionPropagation) act {
	return func(b *bench, ctx context.Context) error {
		_, _, err := b.revisions.Delete(ctx, name, b.validatesDelete(), &metav1.DeleteOptions{PropagationPolicy: &policy})
		return err
	}
}

func (b *bench) validatesDelete() rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		return b.plugin.Validate(ctx, b.attributes(ctx, admission.Delete, nil, obj, obj.(*hub.ClusterExtensionRevision).Name), nil)
	}
}

func rollsBack(b *bench, ctx context.Context) error {
	_, err := b.rollback.Create(ctx, "e-1", &v1alpha1.RevisionRollback{}, nil, &metav1.CreateOptions{})
	return err
}

func ownedByNobody(r *hub.ClusterExtensionRevision) {
	r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: types.UID("nobody")}}
}

func setState(state hub.LifecycleState) func(*hub.ClusterExtensionRevision) {
	return func(r *hub.ClusterExtensionRevision) { r.Spec.LifecycleState = state }
}

func setTeardown(policy hub.TeardownPolicy) func(*hub.ClusterExtensionRevision) {
	return func(r *hub.ClusterExtensionRevision) { r.Spec.TeardownPolicy = policy }
}

func acknowledges(r *hub.ClusterExtensionRevision) {
	metav1.SetMetaDataAnnotation(&r.ObjectMeta, v1alpha1.AcknowledgeDeletionAnnotation, "2-0123456789")
}

// asked adds the condition of the controllers that requests the annotation.
func asked(r *hub.ClusterExtensionRevision) {
	r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: "BudgetExceeded",
		Message: "kubectl annotate --overwrite cer e-1 " + v1alpha1.AcknowledgeDeletionAnnotation + "=2-0123456789", LastTransitionTime: metav1.Now()})
}

func unfinished(r *hub.ClusterExtensionRevision) { r.Finalizers = nil }

// acts returns the writes that may delete objects, or may put revisions into two clusters.
func acts() map[string]act {
	all := map[string]act{
		"create e-3": creates(3, "c"), "create e-3 elsewhere": createsIn("eu", 3, "c"), "create e-4 elsewhere": createsIn("eu", 4, "c"), "roll back to e-1": rollsBack,
		"acknowledge": updates("e-1", acknowledges),
		"pause e-2":   updates("e-2", setState(hub.LifecycleStatePaused)), "activate e-2": updates("e-2", setState(hub.LifecycleStateActive)),
	}
	for _, name := range []string{"e-1", "e-2"} {
		all["archive "+name] = updates(name, setState(hub.LifecycleStateArchived))
		all["delete "+name] = deletes(name, metav1.DeletePropagationBackground)
		all["orphan "+name] = deletes(name, metav1.DeletePropagationOrphan)
		all["keep "+name] = updates(name, setTeardown(hub.TeardownPolicyOrphan))
		all["do not keep "+name] = updates(name, setTeardown(hub.TeardownPolicyDelete))
		all["own "+name] = updates(name, ownedByNobody)
		all["take finalizers off "+name] = updates(name, unfinished)
	}
	return all
}

// chains returns functions that prepare chains.
func chains() map[string]func(b *bench, ctx context.Context) {
	must := func(b *bench, ctx context.Context, acts ...act) {
		b.t.Helper()
		for _, do := range acts {
			if err := do(b, ctx); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	return map[string]func(b *bench, ctx context.Context){
		"active": func(*bench, context.Context) {},
		"paused": func(b *bench, ctx context.Context) {
			must(b, ctx, updates("e-2", setState(hub.LifecycleStatePaused)))
		},
		"kept": func(b *bench, ctx context.Context) {
			must(b, ctx, updates("e-1", setTeardown(hub.TeardownPolicyOrphan)), updates("e-2", setTeardown(hub.TeardownPolicyOrphan)))
		},
		"nothing":   func(b *bench, _ context.Context) { b.etcd.Reset(storetest.NewMemory()) },
		"orphaning": func(b *bench, ctx context.Context) { must(b, ctx, deletes("e-1", metav1.DeletePropagationOrphan)) },
	}
}

func as(ctx context.Context, who string) context.Context {
	return genericrequest.WithUser(genericrequest.WithNamespace(ctx, metav1.NamespaceNone), &user.DefaultInfo{Name: who})
}

// begin creates the chain, with all its objects in the cluster.
func (b *bench) begin(ctx context.Context, stands func(*bench, context.Context)) *storetest.Memory {
	b.t.Helper()
	b.etcd.Reset(storetest.NewMemory())
	admin := as(ctx, "abc")
	for _, do := range []act{creates(1, "ac"), creates(2, "bc")} {
		if err := do(b, admin); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := b.writeStatus(as(internal(b.t), user.APIServerUser), "e-1", asked); err != nil {
		b.t.Fatal(err)
	}
	var inventory chain.Inventory
	for name, revision := range map[string]int64{"a": 1, "b": 2, "c": 2} {
		inventory.Entries = append(inventory.Entries, chain.Entry{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: name, UID: types.UID(name), Revision: revision,
			Digest: b.digest(name)})
	}
	if _, err := b.inventories.Save(ctx, "e", inventory, 0); err != nil {
		b.t.Fatal(err)
	}
	stands(b, admin)
	return b.etcd.Clone()
}

func (b *bench) digest(name string) manifest.Digest {
	object, err := b.digester.New(configMap(name, "1"))
	if err != nil {
		b.t.Fatal(err)
	}
	return object.Digest
}

// goes returns the objects that the engine deletes because the chain has changed. An object is
// deleted if it is in no layer, by garbage collection, by deletion of its revision, or by an
// acknowledgement. Released objects stay.
func (b *bench) goes(ctx context.Context, before map[string]*hub.ClusterExtensionRevision) string {
	if len(before) == 0 {
		return "" // the chain had no revisions
	}
	now := b.all(ctx)
	var layers []*hub.ClusterExtensionRevision
	keep := ""
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if r := now[name]; r.DeletionTimestamp == nil && r.Spec.LifecycleState != hub.LifecycleStateArchived {
			layers, keep = append(layers, r), keep+objectsOf(r)
		}
	}
	if len(layers) > 0 {
		// When a third revision is complete, the earlier revisions end.
		if newest := layers[len(layers)-1]; newest.Spec.Revision > 2 && newest.Spec.LifecycleState == hub.LifecycleStateActive {
			keep = objectsOf(newest)
		}
	}
	delivered := map[string]string{"e-1": "a", "e-2": "bc"}
	gone, left := "", ""
	for name, objects := range delivered {
		r := now[name]
		if r == nil && leaves(before[name]) || r != nil && r.DeletionTimestamp != nil && leaves(r) {
			left += objects
		}
	}
	gone = without("abc", keep)
	for i, r := range layers {
		others := ""
		for j, other := range layers {
			if i != j {
				others += objectsOf(other)
			}
		}
		was := before[r.Name]
		owns, ends := len(r.OwnerReferences) > 0, was != nil && leaves(was) && !leaves(r)
		if owns && !leaves(r) || ends {
			gone += without(objectsOf(r), others)
		}
	}
	for _, r := range now {
		if r.Annotations[v1alpha1.AcknowledgeDeletionAnnotation] != "" && len(layers) > 0 {
			gone += without("abc", objectsOf(layers[len(layers)-1]))
		}
	}
	return without(gone, left)
}

func leaves(r *hub.ClusterExtensionRevision) bool {
	return r.Spec.TeardownPolicy == hub.TeardownPolicyOrphan
}

func objectsOf(r *hub.ClusterExtensionRevision) string {
	names := ""
	for _, phase := range r.Spec.Phases {
		for _, object := range phase.Objects {
			names += object.Name
		}
	}
	return names
}

// without returns the letters of one word that are not in another word.
func without(letters, not string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(not, r) {
			return -1
		}
		return r
	}, letters)
}

func (b *bench) all(ctx context.Context) map[string]*hub.ClusterExtensionRevision {
	b.t.Helper()
	revisions, err := b.revisions.Chain(ctx, "e")
	if err != nil {
		b.t.Fatal(err)
	}
	found := map[string]*hub.ClusterExtensionRevision{}
	for i := range revisions {
		found[revisions[i].Name] = &revisions[i]
	}
	return found
}

type countedKey struct{}

// TestInterleaved runs two writes to a chain, the second in the middle of the first, at each read
// or write of the store. The users have different rights. An object that neither admitted user
// could delete alone is never deleted.
//
// It tries all pairs of writes by users with the same rights, and every seventh pair by other
// users. FULL=1 tries all pairs, with more pairs of users, in a minute.
func TestInterleaved(t *testing.T) {
	for stands, prepare := range chains() {
		t.Run(stands, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			i := &interleaving{bench: b, ctx: as(t.Context(), "abc")}
			i.start = b.begin(t.Context(), prepare)
			i.before = b.all(i.ctx)
			users := [][2]string{{"ab", "ab"}}
			full := os.Getenv("FULL") == "1"
			if stands == "active" || full {
				users = append(users, [2]string{"a", "b"}, [2]string{"-", "-"}, [2]string{"ac", "ac"}, [2]string{"bc", "bc"})
			}
			if full {
				users = append(users, [2]string{"a", "a"}, [2]string{"b", "b"}, [2]string{"c", "c"}, [2]string{"c", "ab"}, [2]string{"ab", "c"}, [2]string{"abc", "-"}, [2]string{"-", "abc"})
			}
			for n, users := range users {
				i.users, i.every = users, 7
				if n == 0 || full {
					i.every = 1
				}
				i.pairs()
			}
			t.Logf("%d histories, up to %d points, both writes admitted in %d", i.histories, i.points, i.both)
			if i.both == 0 || i.points < 5 {
				t.Error("nothing was tried")
			}
		})
	}
}

// interleaving runs all histories of one chain.
type interleaving struct {
	*bench
	ctx    context.Context //nolint:containedctx // the context of the test
	start  *storetest.Memory
	before map[string]*hub.ClusterExtensionRevision
	users  [2]string
	// every selects the pairs of writes to try: 1 means all pairs, 3 every third.
	every int

	histories, points, both int
}

// pairs tries all pairs of writes. A write that the initial chain refuses writes nothing. It is
// also refused at every point before the other write.
func (i *interleaving) pairs() {
	all := acts()
	var alone [2]map[string]bool
	for who, name := range i.users {
		alone[who] = map[string]bool{}
		for act, do := range all {
			i.etcd.Reset(i.start)
			alone[who][act] = do(i.bench, as(i.ctx, name)) == nil
		}
	}
	names := slices.Sorted(maps.Keys(all))
	for n, first := range names {
		for m, second := range names {
			switch {
			case (n+m)%i.every != 0:
			case !alone[0][first] && !alone[1][second]:
			case !alone[1][second]:
				i.history(first, second, -1)
			default:
				for point := 0; i.history(first, second, point); point++ {
					i.points = max(i.points, point)
				}
			}
		}
	}
}

// history runs the second write when the first write reaches a point, or after it. It reports
// whether the first write reached the point.
func (i *interleaving) history(first, second string, point int) bool {
	i.t.Helper()
	i.etcd.Reset(i.start)
	all, reached, came := acts(), 0, false
	var errs [2]error
	other := func() { came, errs[1] = true, all[second](i.bench, as(i.ctx, i.users[1])) }
	i.etcd.Before = func(ctx context.Context) {
		if ctx.Value(countedKey{}) == nil || came {
			return
		}
		if reached == point {
			other()
		}
		reached++
	}
	errs[0] = all[first](i.bench, context.WithValue(as(i.ctx, i.users[0]), countedKey{}, true))
	i.etcd.Before = nil
	inTime := came
	if !came {
		other()
	}
	i.histories++
	may := ""
	for who, err := range errs {
		if err == nil {
			may += i.users[who]
		}
	}
	if errs[0] == nil && errs[1] == nil {
		i.both++
	}
	if gone := i.goes(i.ctx, i.before); without(gone, may) != "" {
		i.t.Errorf("%q by %q (%v), and at its point %d %q by %q (%v): %q goes", first, i.users[0], errs[0], point, second, i.users[1], errs[1], gone)
	}
	i.consistent(first, point, second)
	return inTime
}

// consistent reports contradictions in a chain: revisions in two clusters, and wrong predecessors.
func (i *interleaving) consistent(first string, point int, second string) {
	i.t.Helper()
	now := i.all(i.ctx)
	targets := map[string]bool{}
	for _, r := range now {
		targets[r.Target()] = true
		if i.before[r.Name] != nil {
			continue
		}
		for _, previous := range r.Spec.Previous {
			if there := now[previous.Name]; there == nil && i.before[previous.Name] == nil || there != nil && there.UID != previous.UID {
				i.t.Errorf("%q, and at its point %d %q: %s is said to follow %s %s", first, point, second, r.Name, previous.Name, previous.UID)
			}
		}
		for _, earlier := range now {
			follows := slices.ContainsFunc(r.Spec.Previous, func(p hub.PreviousRevision) bool { return p.UID == earlier.UID })
			if i.before[earlier.Name] == nil && earlier.Spec.Revision < r.Spec.Revision && !follows {
				i.t.Errorf("%q, and at its point %d %q: %s does not follow %s", first, point, second, r.Name, earlier.Name)
			}
		}
	}
	if len(targets) > 1 {
		i.t.Errorf("%q, and at its point %d %q: revisions go into several clusters", first, point, second)
	}
}

// TestArchivedInOwnName: Penstock archives a replaced revision without a check of rights. So the
// newer revision must still exist at the time of the write.
func TestArchivedInOwnName(t *testing.T) {
	b := newBench(t)
	start := b.begin(t.Context(), func(*bench, context.Context) {})
	own := genericrequest.WithUser(genericrequest.WithNamespace(internal(t), metav1.NamespaceNone), &user.DefaultInfo{Name: user.APIServerUser})
	archive := updates("e-1", setState(hub.LifecycleStateArchived))
	succeed := func(r *hub.ClusterExtensionRevision) {
		r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "RolledOut", LastTransitionTime: metav1.Now()})
	}
	for name, tc := range map[string]struct {
		reason string
		newer  act
		want   bool
	}{
		"Succeeded":    {"it has replaced the older one", nil, true},
		"GivenUp":      {"somebody archived it who was asked for what this one does not have", updates("e-2", setState(hub.LifecycleStateArchived)), false},
		"Deleted":      {"somebody deleted it", deletes("e-2", metav1.DeletePropagationBackground), false},
		"Paused":       {"it is not being rolled out", updates("e-2", setState(hub.LifecycleStatePaused)), false},
		"DoneLastTime": {"another replica was faster", archive, true},
	} {
		t.Run(name, func(t *testing.T) {
			b.etcd.Reset(start)
			if err := b.writeStatus(own, "e-2", succeed); err != nil {
				t.Fatal(err)
			}
			if tc.newer != nil {
				if err := tc.newer(b, as(t.Context(), "abc")); err != nil {
					t.Fatal(err)
				}
			}
			if err := archive(b, own); (err == nil) != tc.want || err != nil && !apierrors.IsConflict(err) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
	b.etcd.Reset(start)
	if err := archive(b, own); !apierrors.IsConflict(err) {
		t.Errorf("a newer one that has not succeeded: got %v", err)
	}
}

func (b *bench) writeStatus(ctx context.Context, name string, change func(*hub.ClusterExtensionRevision)) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		updated := old.DeepCopyObject().(*hub.ClusterExtensionRevision)
		change(updated)
		return updated, nil
	})
	_, _, err := b.status.Update(ctx, name, info, rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	return err
}

// internal returns the context of a request that Penstock sends to itself.
func internal(t *testing.T) context.Context {
	t.Helper()
	ctx := t.Context()
	handler := request.MarkInternal(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ctx = r.Context() }), "token")
	asked := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	asked.Header.Set("Authorization", "Bearer token")
	handler.ServeHTTP(httptest.NewRecorder(), asked)
	return ctx
}
