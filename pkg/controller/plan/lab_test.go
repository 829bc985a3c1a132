package plan

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/install"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/authz"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/governance/profile/loadawarerebalancing"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/planwork"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// errCrash is the result of every call after the process died.
var errCrash = errors.New("the process was killed by the test")

// fuse counts the writes of a pass, to all its destinations, until the process dies. The zero value
// never ends the process.
type fuse struct {
	mu          sync.Mutex
	armed, gone bool
	left        int
	lands       bool
}

// write does a write, unless the process is dead. The last write may succeed although its answer is
// lost.
func (f *fuse) write(dry bool, do func() error) error {
	f.mu.Lock()
	last := f.armed && f.left == 0 && !dry
	switch {
	case f.gone:
		f.mu.Unlock()
		return errCrash
	case last:
		f.gone = true
	case f.armed && !dry:
		f.left--
	}
	lands := f.lands
	f.mu.Unlock()
	if last && !lands {
		return errCrash
	}
	err := do()
	if last {
		return errCrash
	}
	return err
}

func (f *fuse) dead() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

// arm makes the process die at the write after the next n writes.
func (f *fuse) arm(n int, lands bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.gone, f.left, f.lands = true, false, n, lands
}

func (f *fuse) mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.gone = false, false
}

// lab is the environment of plans: the real endpoints on a real etcd, the real controller and
// engine, and a fake cluster that applies like kube-apiserver.
type lab struct {
	t        testing.TB
	scheme   *runtime.Scheme
	storage  *configurationplan.Storage
	packs    *pack.Store
	claims   *claim.Claims
	runs     *run.Runs
	cluster  *cluster
	clock    *testingclock.FakePassiveClock
	fuse     *fuse
	profiles []profile.Profile
	version  string
	prefix   string
	// lacks lists rights that a user has lost. poor is the user; empty means all users.
	lacks []string
	poor  string
	// skew is how far the clock is ahead of the host's clock.
	skew        time.Duration
	definitions map[string]*v1alpha1.ConfigurationProfileDefinition
	outage      error
	// stored is called with every status that the controller stores.
	stored func(plan *v1alpha1.ConfigurationPlan)
	loop   *reconciler
	// moves lists the transitions so far. poked is true if all plans are enqueued.
	moves []string
	// events lists the recorded events, as "reason: message".
	events []string
	poked  bool
	again  time.Duration
}

// newStore starts an etcd for several labs, because etcd takes most of their time.
func newStore(t testing.TB) *storeOf {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return &storeOf{t: t, scheme: scheme, etcd: storetest.Client(t)}
}

func (s *storeOf) newLab(t testing.TB, profiles ...profile.Profile) *lab {
	t.Helper()
	if len(profiles) == 0 {
		profiles = []profile.Profile{loadawarerebalancing.Profile{}}
	}
	s.labs++
	var names []hco.ProfileName
	for _, p := range profiles {
		names = append(names, hco.ProfileName(p.Name()))
	}
	prefix := fmt.Sprintf("/lab-%d", s.labs)
	config := storagebackend.NewDefaultConfig(prefix, serializer.NewCodecFactory(s.scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
	config.Transport.ServerList = s.etcd.Endpoints()
	l := &lab{
		t: t, scheme: s.scheme, fuse: &fuse{}, profiles: profiles, version: "v1", prefix: prefix,
		packs: pack.New(s.etcd, prefix, manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}), claims: claim.New(s.etcd, prefix), runs: run.New(s.etcd, prefix),
		clock:  testingclock.NewFakePassiveClock(time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)),
		stored: func(*v1alpha1.ConfigurationPlan) {},
	}
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	storage, err := configurationplan.NewStorage(configurationplan.Deps{
		Scheme: s.scheme, Profiles: names, Packs: l.packs, Claims: l.claims, Runs: l.runs, Clock: l.clock,
		Definitions: func(context.Context, string) (*cel.Profile, error) { return nil, nil }, Approvers: everyApprover{}, Differ: everyReader{},
		OptsGetter: generic.RESTOptions{
			StorageConfig: config.ForResource(v1alpha1.Resource("configurationplans")), Decorator: generic.UndecoratedStorage,
			ResourcePrefix: "hco.kubevirt.io/configurationplans", DeleteCollectionWorkers: 1,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Plan.Destroy)
	l.storage, l.cluster = storage, newCluster(profiles, l.fuse)
	l.restart()
	return l
}

// everyApprover lets all users approve, so that only the controller checks their rights.
type everyApprover struct{}

func (everyApprover) Lacks(context.Context, *v1alpha1.ConfigurationPlan) ([]string, error) {
	return nil, nil
}

// everyReader lets all users read every target, and compares none.
type everyReader struct{ configurationplan.Differ }

func (everyReader) Lacks(context.Context, manifest.Ref) (string, error) { return "", nil }

type storeOf struct {
	t      testing.TB
	scheme *runtime.Scheme
	etcd   interface {
		claim.KV
		Endpoints() []string
	}
	labs int
}

func (s *storeOf) snapshot(l *lab) map[string]string {
	found, err := s.etcd.Get(context.Background(), l.prefix+"/", clientv3.WithPrefix())
	l.must(err)
	records := map[string]string{}
	for _, kv := range found.Kvs {
		records[string(kv.Key)] = string(kv.Value)
	}
	return records
}

// restore sets the store of a lab back to a snapshot, and starts a new process.
func (s *storeOf) restore(l *lab, snapshot map[string]string) {
	_, err := s.etcd.Delete(context.Background(), l.prefix+"/", clientv3.WithPrefix())
	l.must(err)
	for key, value := range snapshot {
		_, err := s.etcd.Put(context.Background(), key, value)
		l.must(err)
	}
	l.restart()
}

// restart starts another process or leader, without memory.
func (l *lab) restart() {
	l.fuse.mend()
	for owner := range l.cluster.watched {
		l.cluster.Drop(owner)
	}
	l.loop = newReconciler(Options{
		Client: api{lab: l}, Reader: api{lab: l},
		Engine: rollout.New(rollout.Options{
			Writer: l.cluster, Reader: l.cluster, Observer: l.cluster, Trier: l.cluster, Names: planwork.Names(), Clock: l.clock,
		}),
		Watched: l.cluster, Profiles: l.profiles, Packs: mortalPacks{mortal{l}}, Claims: mortalClaims{mortal{l}}, Runs: mortalRuns{mortal{l}}, Rights: rights{l},
		Events: recorder{l}, Clock: l.clock, Skew: func() time.Duration { return l.skew }, Version: l.version, Poke: func() { l.poked = true },
		Identities: labIdentities{l}, Freezes: &frozen{},
	})
}

type rights struct{ *lab }

func (r rights) Lacks(_ context.Context, who v1alpha1.PlanApproval, _ []authz.Right) ([]string, error) {
	if r.poor != "" && r.poor != who.Username {
		return nil, nil
	}
	return r.lacks, nil
}

type recorder struct{ lab *lab }

func (r recorder) Event(_ runtime.Object, _, reason, message string) {
	r.lab.events = append(r.lab.events, reason+": "+message)
}

func (r recorder) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.Event(object, kind, reason, fmt.Sprintf(format, args...))
}

func (r recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(object, kind, reason, format, args...)
}

// mortal is the controller's access to the store. It fails after the process died, and during an
// outage of etcd.
type mortal struct{ *lab }

func (m mortal) write(do func() error) error {
	if m.outage != nil {
		return m.outage
	}
	return m.fuse.write(false, do)
}

func (m mortal) read() error {
	if m.fuse.dead() {
		return errCrash
	}
	return m.outage
}

type mortalPacks struct{ mortal }

func (m mortalPacks) Put(ctx context.Context, objects []manifest.Object) (root string, err error) {
	err = m.write(func() error { root, err = m.packs.Put(ctx, objects); return err })
	return root, err
}

func (m mortalPacks) Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error) {
	return also(m.read(), func() (map[manifest.Digest][]byte, error) { return m.packs.Read(ctx, root) })
}

func (m mortalPacks) Objects(ctx context.Context, root string) ([]manifest.Object, error) {
	return also(m.read(), func() ([]manifest.Object, error) { return m.packs.Objects(ctx, root) })
}

func also[T any](err error, do func() (T, error)) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	return do()
}

type mortalRuns struct{ mortal }

func (m mortalRuns) List(ctx context.Context, name string) ([]run.Row, error) {
	return also(m.read(), func() ([]run.Row, error) { return m.runs.List(ctx, name) })
}

func (m mortalRuns) Names(ctx context.Context) ([]string, error) {
	return also(m.read(), func() ([]string, error) { return m.runs.Names(ctx) })
}

func (m mortalRuns) Put(ctx context.Context, name string, row run.Row, packs ...string) error {
	return m.write(func() error { return m.runs.Put(ctx, name, row, packs...) })
}

type mortalClaims struct{ mortal }

func (m mortalClaims) Acquire(ctx context.Context, key, holder string) error {
	// A claim without a change writes nothing, so it must not burn the fuse.
	if held, err := m.claims.Holder(ctx, key); err == nil && held == holder {
		return m.read()
	}
	return m.write(func() error { return m.claims.Acquire(ctx, key, holder) })
}

func (m mortalClaims) TakeOver(ctx context.Context, key, from, to string) error {
	return m.write(func() error { return m.claims.TakeOver(ctx, key, from, to) })
}

func (m mortalClaims) Release(ctx context.Context, key, holder string) error {
	if held, err := m.claims.Holder(ctx, key); err == nil && held != holder {
		return m.read()
	}
	return m.write(func() error { return m.claims.Release(ctx, key, holder) })
}

func (m mortalClaims) Holder(ctx context.Context, key string) (string, error) {
	return also(m.read(), func() (string, error) { return m.claims.Holder(ctx, key) })
}

type api struct {
	client.Client
	*lab
}

func as(name string) context.Context {
	ctx := request.WithUser(request.WithNamespace(request.NewContext(), ""), &user.DefaultInfo{Name: name, UID: "uid-" + name, Groups: []string{"admins"}})
	return request.WithRequestInfo(ctx, &request.RequestInfo{})
}

func (a api) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if err := (mortal{a.lab}).read(); err != nil {
		return err
	}
	if definition, isDefinition := into.(*v1alpha1.ConfigurationProfileDefinition); isDefinition {
		return a.definition(key.Name, definition)
	}
	found, err := a.storage.Plan.Get(as("loop"), key.Name, &metav1.GetOptions{})
	if err != nil {
		return err
	}
	return v1alpha1.Convert_hco_ConfigurationPlan_To_v1alpha1_ConfigurationPlan(found.(*hco.ConfigurationPlan), into.(*v1alpha1.ConfigurationPlan), nil)
}

func (a api) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if err := (mortal{a.lab}).read(); err != nil {
		return err
	}
	list := into.(*v1alpha1.ConfigurationPlanList)
	for _, name := range a.plans() {
		list.Items = append(list.Items, *a.plan(name))
	}
	return nil
}

func (a api) Status() client.SubResourceWriter { return statusWriter{lab: a.lab} }

type statusWriter struct {
	client.SubResourceWriter
	*lab
}

func (w statusWriter) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	return mortal{w.lab}.write(func() error {
		var internal hco.ConfigurationPlan
		if err := v1alpha1.Convert_v1alpha1_ConfigurationPlan_To_hco_ConfigurationPlan(object.DeepCopyObject().(*v1alpha1.ConfigurationPlan), &internal, nil); err != nil {
			return err
		}
		out, _, err := w.storage.Status.Update(as("loop"), object.GetName(), rest.DefaultUpdatedObjectInfo(&internal), nil, nil, false, &metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		into := object.(*v1alpha1.ConfigurationPlan)
		if err := v1alpha1.Convert_hco_ConfigurationPlan_To_v1alpha1_ConfigurationPlan(out.(*hco.ConfigurationPlan), into, nil); err != nil {
			return err
		}
		w.stored(into.DeepCopy())
		return nil
	})
}

func (l *lab) plan(name string) *v1alpha1.ConfigurationPlan {
	l.t.Helper()
	found, err := l.storage.Plan.Get(as("reader"), name, &metav1.GetOptions{})
	if err != nil {
		l.t.Fatalf("reading plan %s: %v", name, err)
	}
	out := &v1alpha1.ConfigurationPlan{}
	if err := v1alpha1.Convert_hco_ConfigurationPlan_To_v1alpha1_ConfigurationPlan(found.(*hco.ConfigurationPlan), out, nil); err != nil {
		l.t.Fatal(err)
	}
	return out
}

func (l *lab) plans() []string {
	found, err := l.storage.Plan.List(as("reader"), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var names []string
	if err := meta.EachListItem(found, func(o runtime.Object) error {
		names = append(names, o.(*hco.ConfigurationPlan).Name)
		return nil
	}); err != nil {
		l.t.Fatal(err)
	}
	return names
}

type spec func(*hco.ConfigurationPlan)

func action(action hco.Action) spec { return func(p *hco.ConfigurationPlan) { p.Spec.Action = action } }

func take(p *hco.ConfigurationPlan) { p.Spec.OnConflict = hco.OnConflictTake }

func carryOn(p *hco.ConfigurationPlan) { p.Spec.FailurePolicy = hco.FailurePolicyContinue }

func interval(seconds int32) spec {
	return func(p *hco.ConfigurationPlan) {
		p.Spec.Options = &hco.PlanOptions{LoadAwareRebalancing: &hco.LoadAwareRebalancingOptions{DeschedulingIntervalSeconds: &seconds}}
	}
}

func within(limit time.Duration) spec {
	return func(p *hco.ConfigurationPlan) { p.Spec.WaitTimeout = &metav1.Duration{Duration: limit} }
}

func override(name string) spec {
	return func(p *hco.ConfigurationPlan) { p.Annotations = map[string]string{v1alpha1.OverrideAnnotation: name} }
}

// create creates a plan with the defaults of the API.
func (l *lab) create(name string, changes ...spec) error {
	external := &v1alpha1.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ConfigurationPlanSpec{Profile: v1alpha1.ProfileLoadAwareRebalancing}}
	l.scheme.Default(external)
	plan := &hco.ConfigurationPlan{}
	if err := v1alpha1.Convert_v1alpha1_ConfigurationPlan_To_hco_ConfigurationPlan(external, plan, nil); err != nil {
		return err
	}
	for _, change := range changes {
		change(plan)
	}
	_, err := l.storage.Plan.Create(as("alice"), plan, nil, &metav1.CreateOptions{})
	return err
}

// edit changes spec in one write, which does not name a reviewed plan.
func (l *lab) edit(name string, changes ...spec) error {
	return l.editHaving(configurationplan.Reviewed{}, name, changes...)
}

// enforce sets Apply, and names the present plan as reviewed.
func (l *lab) enforce(name string) error {
	return l.editHaving(configurationplan.Reviewed{PlanHash: l.plan(name).Status.PlanHash}, name, action(hco.ActionApply))
}

// editHaving is edit by a user who names the reviewed plan.
func (l *lab) editHaving(reviewed configurationplan.Reviewed, name string, changes ...spec) error {
	return l.editAs("alice", reviewed, name, changes...)
}

func (l *lab) editAs(who string, reviewed configurationplan.Reviewed, name string, changes ...spec) error {
	info := rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		plan := old.DeepCopyObject().(*hco.ConfigurationPlan)
		for _, change := range changes {
			change(plan)
		}
		return plan, nil
	})
	_, _, err := l.storage.Plan.Update(configurationplan.WithReviewed(as(who), reviewed), name, info, nil, nil, false, &metav1.UpdateOptions{})
	return err
}

func (l *lab) approve(name, hash string) error { return l.approveAs("alice", name, hash) }

func (l *lab) approveAs(who, name, hash string) error {
	_, err := l.storage.Approve.Create(as(who), name, &hco.PlanApprovalRequest{Spec: hco.PlanApprovalRequestSpec{PlanHash: hash, Comment: "CHG-1"}}, nil, &metav1.CreateOptions{})
	return err
}

func (l *lab) retry(name string) error {
	before := l.plan(name).Status.Phase
	_, err := l.storage.Retry.Create(as("alice"), name, &hco.PlanRetryRequest{}, nil, &metav1.CreateOptions{})
	if err == nil {
		l.moves = append(l.moves, fmt.Sprintf("%s Retry %s", before, l.plan(name).Status.Phase))
	}
	return err
}

func (l *lab) rollback(name string, number int64) error {
	_, err := l.storage.Rollback.Create(as("alice"), name, &hco.PlanRollbackRequest{Spec: hco.PlanRollbackRequestSpec{Run: number}}, nil, &metav1.CreateOptions{})
	return err
}

func (l *lab) remove(name string) error {
	_, _, err := l.storage.Plan.Delete(as("alice"), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return err
}

// history returns the runs of plans of a name, the newest first.
func (l *lab) history(name string) []v1alpha1.PlanRun {
	l.t.Helper()
	found, err := l.storage.History.Get(as("reader"), name, &metav1.GetOptions{})
	l.must(err)
	return found.(*v1alpha1.PlanHistory).Runs
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) pass(name string) error {
	ctx := log.IntoContext(context.Background(), funcr.New(func(_, args string) {
		if _, moves, found := strings.Cut(args, `"moves"=`); found {
			for _, move := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(moves, -1) {
				l.moves = append(l.moves, move[1])
			}
		}
	}, funcr.Options{Verbosity: 1}))
	result, err := l.loop.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: name}})
	l.again = result.RequeueAfter
	return err
}

// settle passes over all plans until nothing changes. It ignores errors of passes, because the next
// pass retries.
func (l *lab) settle() {
	l.t.Helper()
	for range 40 {
		before := l.states()
		l.poked = false
		for _, name := range l.plans() {
			_ = l.pass(name)
			if l.fuse.dead() {
				l.restart()
			}
		}
		if !l.poked && l.states() == before {
			return
		}
	}
	l.t.Fatalf("the plans do not come to rest: %s", l.states())
}

func (l *lab) states() string {
	var all []string
	for _, name := range l.plans() {
		plan := l.plan(name)
		all = append(all, name+"@"+plan.ResourceVersion+" "+string(plan.Status.Phase)+" "+plan.Status.Message)
	}
	return strings.Join(all, "; ")
}

// is settles, and fails unless the plan has the phase and its status contains the texts.
func (l *lab) is(name string, phase v1alpha1.Phase, texts ...string) *v1alpha1.ConfigurationPlan {
	l.t.Helper()
	l.settle()
	plan := l.plan(name)
	said := plan.Status.Message
	for _, c := range plan.Status.Conditions {
		said += "; " + c.Reason
	}
	for _, item := range plan.Status.Items {
		said += fmt.Sprintf("; %s %s: %s", item.Name, item.State, item.Message)
	}
	if plan.Status.Phase != phase {
		l.t.Fatalf("plan %s is %s, want %s: %s", name, plan.Status.Phase, phase, said)
	}
	for _, text := range texts {
		if !strings.Contains(said, text) {
			l.t.Errorf("plan %s does not say %q: %s", name, text, said)
		}
	}
	return plan
}

func (l *lab) claimed() string {
	holder, err := l.claims.Holder(context.Background(), governance.ClaimKey(string(v1alpha1.ProfileLoadAwareRebalancing)))
	l.must(err)
	name, _ := governance.ParseHolder(holder)
	return name
}

// Targets of the profile.
func descheduler() manifest.ID {
	return manifest.ID{Group: "operator.openshift.io", Kind: "KubeDescheduler", Namespace: "openshift-kube-descheduler-operator", Name: "cluster"}
}

func psi() manifest.ID { return configID("99-worker-psi-karg") }

// usual sets up a cluster with a pool of four workers and a descheduler.
func (l *lab) usual() *lab {
	l.cluster.pool("worker", 4)
	l.cluster.alter(descheduler(), "kubectl-create", func(o map[string]any) {
		o["spec"] = map[string]any{"managementState": "Managed", "logLevel": "Normal", "profiles": []any{"AffinityAndTaints"}}
	})
	return l
}

// states returns the states of the items, such as "Completed Pending".
func states(plan *v1alpha1.ConfigurationPlan) string {
	var all []string
	for _, item := range plan.Status.Items {
		all = append(all, string(item.State))
	}
	return strings.Join(all, " ")
}

func (l *lab) moved(move string) bool { return slices.Contains(l.moves, move) }
