package configurationplan

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/warning"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/install"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile/cel"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/claim"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/run"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// Tests in pkg/controller/plan run the endpoints with a controller.

// desk holds the endpoints over a real store, without a controller.
type desk struct {
	*Storage
	t     *testing.T
	runs  *run.Runs
	packs *pack.Store
}

func noon() time.Time { return time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC) }

func newDesk(t *testing.T) *desk {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	etcd := storetest.Client(t)
	config := storagebackend.NewDefaultConfig("/desk", serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	config.Transport.ServerList = etcd.Endpoints()
	d := &desk{t: t, runs: run.New(etcd, "/desk"), packs: pack.New(etcd, "/desk", manifest.Digester{SecretKey: make([]byte, 32)})}
	storage, err := NewStorage(Deps{
		Scheme: scheme, Packs: d.packs, Claims: claim.New(etcd, "/desk"), Runs: d.runs, Clock: testingclock.NewFakePassiveClock(noon()),
		Definitions: func(context.Context, string) (*cel.Profile, error) { return nil, nil },
		Differ:      everyRight{}, Approvers: everyApprover{},
		OptsGetter: generic.RESTOptions{
			StorageConfig: config.ForResource(v1alpha1.Resource(resource)), Decorator: generic.UndecoratedStorage,
			ResourcePrefix: "hco.kubevirt.io/configurationplans", DeleteCollectionWorkers: 1,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(storage.Plan.Destroy)
	d.Storage = storage
	return d
}

// everyRight is a Differ that finds no change and lets every caller read.
type everyRight struct{}

func (everyRight) Diff(context.Context, *hco.ConfigurationPlan) ([]v1alpha1.PlanDiffItem, error) {
	return nil, nil
}

func (everyRight) Lacks(context.Context, manifest.Ref) (string, error) { return "", nil }

type everyApprover struct{}

func (everyApprover) Lacks(context.Context, *v1alpha1.ConfigurationPlan) ([]string, error) {
	return nil, nil
}

func as(name string) context.Context {
	return request.WithUser(request.WithNamespace(request.NewContext(), ""), &user.DefaultInfo{Name: name, UID: "uid-" + name, Groups: []string{"admins"}, Extra: map[string][]string{"scopes": {"user:info"}}})
}

// hash returns a text with the form of a hash.
func hash(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func blank(action hco.Action) *hco.ConfigurationPlan {
	return &hco.ConfigurationPlan{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: hco.ConfigurationPlanSpec{
		Profile: hco.ProfileLoadAwareRebalancing, Action: action, FailurePolicy: hco.FailurePolicyAbort, OnConflict: hco.OnConflictBlock,
	}}
}

// has creates plan a and writes its status as the controller does.
func (d *desk) has(status hco.ConfigurationPlanStatus) *hco.ConfigurationPlan {
	d.t.Helper()
	if _, err := d.Plan.Create(as("alice"), blank(hco.ActionDryRun), nil, &metav1.CreateOptions{}); err != nil {
		d.t.Fatal(err)
	}
	return d.becomes(status)
}

func (d *desk) becomes(status hco.ConfigurationPlanStatus) *hco.ConfigurationPlan {
	d.t.Helper()
	out, _, err := d.Status.Update(as("loop"), "a", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		plan := old.DeepCopyObject().(*hco.ConfigurationPlan)
		if status.InputsHash == "" {
			status.InputsHash = inputs(plan)
		}
		status.ObservedGeneration = plan.Generation
		plan.Status = status
		plan.Spec.Action = hco.ActionIgnore // action is not part of status
		return plan, nil
	}), nil, nil, false, &metav1.UpdateOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return out.(*hco.ConfigurationPlan)
}

func (d *desk) approve(planHash string, dryRun ...string) error {
	_, err := d.Approve.Create(as("bob"), "a", &hco.PlanApprovalRequest{Spec: hco.PlanApprovalRequestSpec{PlanHash: planHash, Comment: "CHG-1"}}, nil, &metav1.CreateOptions{DryRun: dryRun})
	return err
}

func (d *desk) plan() *hco.ConfigurationPlan {
	d.t.Helper()
	found, err := d.Plan.Get(as("alice"), "a", &metav1.GetOptions{})
	if err != nil {
		d.t.Fatal(err)
	}
	return found.(*hco.ConfigurationPlan)
}

func waiting() hco.ConfigurationPlanStatus {
	return hco.ConfigurationPlanStatus{Phase: hco.PhaseReviewRequired, PlanHash: hash("a"), Items: []hco.PlanItem{{Name: "one", TargetRef: hco.TargetRef{APIVersion: "v1", Kind: "K", Name: "n"}}}}
}

// TestCopiesApproveNothing: a copy of a stored plan, as in a backup, approves nothing without a
// hash. The plan of a file with Apply is approved, with and without the annotation of kubectl
// apply.
func TestCopiesApproveNothing(t *testing.T) {
	d := newDesk(t)
	applied := func(spec string) *hco.ConfigurationPlan {
		plan := blank(hco.ActionApply)
		plan.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: `{"kind":"ConfigurationPlan","spec":` + spec + `}`}
		return plan
	}
	labelled, pinned := blank(hco.ActionApply), applied(`{"action":"DryRun"}`)
	labelled.Labels, pinned.Spec.ApprovedPlanHash = map[string]string{"velero.io/restore-name": "r1"}, hash("a")
	for name, c := range map[string]struct {
		plan     *hco.ConfigurationPlan
		approved bool
		warns    string
	}{
		"from a file":              {blank(hco.ActionApply), true, ""},
		"by kubectl apply":         {applied(`{"action":"Apply"}`), true, ""},
		"unreadable annotation":    {applied(`"x"`), true, ""},
		"approved after apply":     {applied(`{"action":"DryRun"}`), false, "has another action; review and approve"},
		"its file has the default": {applied(`{}`), false, "has another action"},
		"restored":                 {labelled, false, "restore r1 created the plan"},
		"with its hash":            {pinned, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d.create(t, name, c.plan, c.approved, c.warns)
		})
	}
	t.Run("of the field", func(t *testing.T) {
		for file, approved := range map[string]bool{"restored.yaml": false, "with-hash.yaml": true} {
			text, err := os.ReadFile(filepath.Join("../../../../../shared/data/field-cases/plans/08-plan-backup", file))
			if err != nil {
				t.Skipf("the cases of the field are kept beside the repository: %v", err)
			}
			external, plan := &v1alpha1.ConfigurationPlan{}, &hco.ConfigurationPlan{}
			if err := yaml.UnmarshalStrict(text, external); err != nil {
				t.Fatal(err)
			}
			v1alpha1.SetObjectDefaults_ConfigurationPlan(external)
			if err := v1alpha1.Convert_v1alpha1_ConfigurationPlan_To_hco_ConfigurationPlan(external, plan, nil); err != nil {
				t.Fatal(err)
			}
			d.create(t, file, plan, approved, "")
		}
	})
}

// create creates a plan, and checks its approval and a warning.
func (d *desk) create(t *testing.T, name string, plan *hco.ConfigurationPlan, approved bool, warns string) {
	t.Helper()
	plan.Name = "copy-" + strings.NewReplacer(" ", "-", ".", "-").Replace(name)
	heard := &said{}
	made, err := d.Plan.Create(warning.WithWarningRecorder(as("alice"), heard), plan, nil, &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		t.Fatal(err)
	}
	if got := made.(*hco.ConfigurationPlan); (got.Status.Approval != nil) != approved || got.Spec.Action != hco.ActionApply {
		t.Errorf("%s: action %s, approval %+v, want one: %t", name, got.Spec.Action, got.Status.Approval, approved)
	}
	if words := strings.Join(*heard, "; "); warns != "" && !strings.Contains(words, warns) || approved && strings.Contains(words, "approves nothing") {
		t.Errorf("%s warns %q, want %q", name, words, warns)
	}
}

// TestApproveStamps: the server records the approver and the time.
func TestApproveStamps(t *testing.T) {
	d := newDesk(t)
	d.has(waiting())
	if err := d.approve(hash("a"), metav1.DryRunAll); err != nil || d.plan().Status.Approval != nil {
		t.Errorf("a dry-run: %v, approval %+v", err, d.plan().Status.Approval)
	}
	if err := d.approve(hash("a")); err != nil {
		t.Fatal(err)
	}
	plan := d.plan()
	want := &hco.PlanApproval{
		Username: "bob", UID: "uid-bob", Groups: []string{"admins"}, Extra: map[string]hco.ExtraValue{"scopes": {"user:info"}}, Time: metav1.NewTime(noon()), PlanHash: hash("a"), Comment: "CHG-1", Mode: hco.ApprovalExplicit,
	}
	if diff := cmp.Diff(want, plan.Status.Approval); diff != "" {
		t.Errorf("approval (-want +got):\n%s", diff)
	}
	if plan.Spec.Action != hco.ActionApply || plan.Generation != 2 {
		t.Errorf("action %s, generation %d", plan.Spec.Action, plan.Generation)
	}
}

// TestApproveRefuses: only a plan that waits for approval and may be executed can be approved, and
// only with its hash.
func TestApproveRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		status func(*hco.ConfigurationPlanStatus)
		hash   string
		says   string
	}{
		"another plan":  {func(*hco.ConfigurationPlanStatus) {}, hash("b"), "review it again"},
		"nothing waits": {func(s *hco.ConfigurationPlanStatus) { s.Phase = hco.PhaseCompleted }, hash("a"), "no plan waits"},
		"another spec":  {func(s *hco.ConfigurationPlanStatus) { s.InputsHash = hash("c") }, hash("a"), "a new plan is being computed"},
		"taken fields": {func(s *hco.ConfigurationPlanStatus) {
			s.Items[0].Takes = []hco.TakenFields{{Manager: "argocd", Fields: []string{".spec.x"}}}
		}, hash("a"), "argocd"},
		"no hash at all": {func(*hco.ConfigurationPlanStatus) {}, "", "names the plan that was read"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			status := waiting()
			c.status(&status)
			d.has(status)
			err := d.approve(c.hash)
			if err == nil || !strings.Contains(err.Error(), c.says) || !(apierrors.IsConflict(err) || apierrors.IsInvalid(err)) {
				t.Errorf("%v, want %q", err, c.says)
			}
			if plan := d.plan(); plan.Status.Approval != nil || plan.Spec.Action != hco.ActionDryRun {
				t.Errorf("action %s, approval %+v", plan.Spec.Action, plan.Status.Approval)
			}
		})
	}
}

// answers is an Approvers that reports fixed missing rights of the user.
type answers struct {
	lacks []string
	err   error
	asked int
}

func (a *answers) Lacks(_ context.Context, plan *v1alpha1.ConfigurationPlan) ([]string, error) {
	if plan.Status.Items[0].Name == "one" {
		a.asked++
	}
	return a.lacks, a.err
}

// TestApproveAsksForRights: an approver needs the rights that the plan uses. The error names the
// missing rights. If the plan cannot be approved by any user, the error reports that first.
func TestApproveAsksForRights(t *testing.T) {
	d := newDesk(t)
	d.has(waiting())
	for name, c := range map[string]struct {
		answers answers
		hash    string
		is      func(error) bool
		says    string
		asked   int
	}{
		"lacks":      {answers{lacks: []string{"create x a", "patch x a"}}, hash("a"), apierrors.IsForbidden, `configurationplans.hco.kubevirt.io "a" is forbidden: to approve a plan, you need the rights to all that it does: you cannot create x a, patch x a`, 1},
		"unknown":    {answers{err: apierrors.NewServiceUnavailable("not now")}, hash("a"), apierrors.IsServiceUnavailable, "not now", 1},
		"other hash": {answers{lacks: []string{"create x a"}}, hash("b"), apierrors.IsConflict, "review it again", 0},
	} {
		for _, dryRun := range [][]string{nil, {metav1.DryRunAll}} {
			asked := c.answers
			d.Approve.approvers = &asked
			if err := d.approve(c.hash, dryRun...); !c.is(err) || !strings.Contains(err.Error(), c.says) || asked.asked != c.asked {
				t.Errorf("%s, dry-run %v: %v after %d questions, want %q after %d", name, dryRun, err, asked.asked, c.says, c.asked)
			}
		}
	}
	if plan := d.plan(); plan.Status.Approval != nil || plan.Spec.Action != hco.ActionDryRun {
		t.Errorf("action %s, approval %+v", plan.Spec.Action, plan.Status.Approval)
	}
	d.Approve.approvers = &answers{}
	if err := d.approve(hash("a")); err != nil {
		t.Errorf("with all rights: %v", err)
	}
}

// TestNobodyForges: a write of spec changes no status, and a write of status changes no spec.
func TestNobodyForges(t *testing.T) {
	d := newDesk(t)
	forged := blank(hco.ActionDryRun)
	forged.Status = waiting()
	forged.Status.Approval = &hco.PlanApproval{Username: "mallory", PlanHash: hash("a")}
	out, err := d.Plan.Create(as("mallory"), forged, nil, &metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if status := out.(*hco.ConfigurationPlan).Status; status.Approval != nil || status.PlanHash != "" || status.Phase != hco.PhasePending {
		t.Errorf("a create brought its status: %+v", status)
	}
	if plan := d.becomes(waiting()); plan.Spec.Action != hco.ActionDryRun || plan.Generation != 1 {
		t.Errorf("a write of status changed spec: %s, generation %d", plan.Spec.Action, plan.Generation)
	}
	_, _, err = d.Plan.Update(as("mallory"), "a", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		plan := old.DeepCopyObject().(*hco.ConfigurationPlan)
		plan.Status.Approval = &hco.PlanApproval{Username: "mallory", PlanHash: hash("a")}
		plan.Spec.FailurePolicy = hco.FailurePolicyContinue
		return plan, nil
	}), nil, nil, false, &metav1.UpdateOptions{})
	if plan := d.plan(); err != nil || plan.Status.Approval != nil || plan.Generation != 2 {
		t.Errorf("%v, approval %+v, generation %d", err, plan.Status.Approval, plan.Generation)
	}
}

// TestActsRefuse: a refused retry or rollback returns the reason.
func TestActsRefuse(t *testing.T) {
	d := newDesk(t)
	d.has(waiting())
	rollback := func(number int64) error {
		_, err := d.Rollback.Create(as("bob"), "a", &hco.PlanRollbackRequest{Spec: hco.PlanRollbackRequestSpec{Run: number}}, nil, &metav1.CreateOptions{})
		return err
	}
	retry := func() error {
		_, err := d.Retry.Create(as("bob"), "a", &hco.PlanRetryRequest{}, nil, &metav1.CreateOptions{})
		return err
	}
	refused := func(what string, err error, says string) {
		t.Helper()
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", what, err, says)
		}
	}
	refused("a rollback of nothing", rollback(0), "never executed")
	idle := run.Row{Plan: string(d.plan().UID), Number: 2, Body: []byte(`{"plan":"x","run":2,"items":[{"name":"a","action":"None"}]}`)}
	if err := d.runs.Put(t.Context(), "a", idle); err != nil {
		t.Fatal(err)
	}
	before := d.plan()
	if err := rollback(2); err == nil || !strings.Contains(err.Error(), "run 2 changed nothing") {
		t.Errorf("a run that changed nothing: %v", err)
	}
	if after := d.plan(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the refusal wrote: %+v", after.Spec)
	}
	row := run.Row{Plan: string(d.plan().UID), Number: 1, Body: []byte(`{"plan":"x","run":1,"items":[{"name":"a","action":"Update","startedAt":"2026-01-01T00:00:00Z"}]}`)}
	if err := d.runs.Put(t.Context(), "a", row); err != nil {
		t.Fatal(err)
	}
	refused("a rollback of another run", rollback(7), "no run 7")
	d.becomes(hco.ConfigurationPlanStatus{Phase: hco.PhaseInProgress})
	refused("a rollback in a run", rollback(1), "being executed")
	refused("a retry in a run", retry(), "being executed")
	d.becomes(hco.ConfigurationPlanStatus{Phase: hco.PhaseIgnored})
	refused("a retry of what is ignored", retry(), "Ignore")
	d.becomes(waiting())
	if err := rollback(0); err != nil || d.plan().Spec.RestoreRun != 1 || d.plan().Spec.Action != hco.ActionDryRun {
		t.Errorf("%v: %+v", err, d.plan().Spec)
	}
}

// TestHistoryOutlives: the history shows the runs of a deleted plan. It is empty for a plan that
// never existed.
func TestHistoryOutlives(t *testing.T) {
	d := newDesk(t)
	read := func() string {
		found, err := d.History.Get(as("alice"), "a", &metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var runs []string
		for _, one := range found.(*v1alpha1.PlanHistory).Runs {
			runs = append(runs, fmt.Sprintf("%d %s", one.Run, one.Outcome))
		}
		return strings.Join(runs, ", ")
	}
	if got := read(); got != "" {
		t.Errorf("history of nothing: %s", got)
	}
	for number := int64(1); number <= 2; number++ {
		row := run.Row{Plan: "uid", Number: number, Body: fmt.Appendf(nil, `{"plan":"uid","run":%d,"outcome":"Completed"}`, number)}
		if err := d.runs.Put(t.Context(), "a", row); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(); got != "2 Completed, 1 Completed" {
		t.Errorf("history: %s", got)
	}
}

// TestManifests: the items are the objects of the pack, in its order. A plan without a pack has no
// items.
func TestManifests(t *testing.T) {
	d := newDesk(t)
	d.has(hco.ConfigurationPlanStatus{Phase: hco.PhasePending})
	list, err := d.Manifests.Get(as("alice"), "a", &metav1.GetOptions{})
	if err != nil || len(list.(*hco.PlanManifestList).Items) != 0 {
		t.Errorf("no plan yet: %v, %v", list, err)
	}
	object, err := manifest.Digester{}.New(map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "n"}})
	if err != nil {
		t.Fatal(err)
	}
	status := waiting()
	if status.Manifests, err = d.packs.Put(t.Context(), []manifest.Object{object}); err != nil {
		t.Fatal(err)
	}
	d.becomes(status)
	list, err = d.Manifests.Get(as("alice"), "a", &metav1.GetOptions{})
	if err != nil || len(list.(*hco.PlanManifestList).Items) != 1 || string(list.(*hco.PlanManifestList).Items[0].Raw) != string(object.JSON) {
		t.Errorf("%v, %v", list, err)
	}
}

func TestTable(t *testing.T) {
	plan := blank(hco.ActionApply)
	plan.CreationTimestamp = metav1.NewTime(noon().Add(-90 * time.Minute))
	plan.Status = waiting()
	plan.Status.ImpactSeverity, plan.Status.Message = hco.ImpactHigh, "approve it"
	plan.Status.Items[0].State = hco.ItemSkipped
	out, err := table{clock: testingclock.NewFakePassiveClock(noon())}.ConvertToTable(t.Context(), plan, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []any{"a", "LoadAwareRebalancing", "Apply", "ReviewRequired", "High", "1/1", "", "", "90m", "0/1", hash("a"), "approve it"}
	if diff := cmp.Diff(want, out.Rows[0].Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if len(out.ColumnDefinitions) != len(want) {
		t.Errorf("%d columns, %d cells", len(out.ColumnDefinitions), len(want))
	}
}

func TestTableOfTerms(t *testing.T) {
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(noon().Add(d)) }
	for name, c := range map[string]struct {
		reason  string
		change  func(*hco.ConfigurationPlan)
		begins  string
		approve string
	}{
		"waits": {"when it opens", func(*hco.ConfigurationPlan) {}, "2026-07-01T22:00Z", "0/2"},
		"one": {"one of two", func(p *hco.ConfigurationPlan) {
			p.Status.Approval = &hco.PlanApproval{PlanHash: hash("a"), Username: "bob"}
		}, "2026-07-01T22:00Z", "1/2"},
		"another": {"it was for another plan", func(p *hco.ConfigurationPlan) {
			p.Status.Approval = &hco.PlanApproval{PlanHash: hash("b"), Username: "bob"}
		}, "2026-07-01T22:00Z", "0/2"},
		"open": {"it may begin", func(p *hco.ConfigurationPlan) { p.Status.Window.OpensAt = at(-time.Hour) }, "now", "0/2"},
		"scheduled": {"", func(p *hco.ConfigurationPlan) {
			p.Status.Phase = hco.PhaseScheduled
			p.Status.Approval = &hco.PlanApproval{PlanHash: hash("a"), Username: "bob", Others: []hco.PlanApprover{{Username: "carol"}}}
		}, "2026-07-01T22:00Z", "2/2"},
		"runs": {"it has begun", func(p *hco.ConfigurationPlan) { p.Status.Phase = hco.PhaseInProgress }, "", "0/2"},
		"pause": {"an item waits", func(p *hco.ConfigurationPlan) {
			p.Status.Phase = hco.PhaseInProgress
			p.Status.Conditions = []metav1.Condition{{Type: "Ready", Reason: "WaitingForWindow"}}
		}, "2026-07-01T22:00Z", "0/2"},
		"none": {"there is no window", func(p *hco.ConfigurationPlan) { p.Status.Window, p.Spec.Approvals = nil, 0 }, "", "0/1"},
	} {
		t.Run(name, func(t *testing.T) {
			plan := blank(hco.ActionApply)
			plan.Status, plan.Spec.Approvals = waiting(), 2
			plan.Status.Window = &hco.PlanWindowStatus{OpensAt: metav1.NewTime(time.Date(2026, 7, 1, 22, 0, 0, 0, time.UTC))}
			c.change(plan)
			out, err := table{clock: testingclock.NewFakePassiveClock(noon())}.ConvertToTable(t.Context(), plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			if cells := out.Rows[0].Cells; cells[7] != c.begins || cells[9] != c.approve {
				t.Errorf("%s: begins %q, approvals %q, want %q and %q", c.reason, cells[7], cells[9], c.begins, c.approve)
			}
		})
	}
}

// TestTableTellsWhatGoesOn: a watch shows the progress of a plan in its columns, from the review to
// the end.
func TestTableTellsWhatGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		phase           hco.Phase
		reason, current string
	}{
		"review":      {hco.PhaseReviewRequired, "ReviewRequired", ""},
		"conflict":    {hco.PhaseReviewRequired, "FieldConflict", "FieldConflict"},
		"window":      {hco.PhaseScheduled, "WaitingForWindow", ""},
		"stale":       {hco.PhaseScheduled, "PlanStale", "PlanStale"},
		"an item":     {hco.PhaseInProgress, "InProgress", "second"},
		"frozen":      {hco.PhaseInProgress, "Frozen", "Frozen"},
		"for others":  {hco.PhaseInProgress, "WaitingForProfile", "WaitingForProfile"},
		"item failed": {hco.PhaseFailed, "ItemFailed", "ItemFailed"},
		"completed":   {hco.PhaseCompleted, "Completed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := blank(hco.ActionApply)
			plan.Status = waiting()
			plan.Status.Phase, plan.Status.Conditions = c.phase, []metav1.Condition{{Type: "Ready", Reason: c.reason}}
			plan.Status.Items = []hco.PlanItem{{Name: "first", State: hco.ItemCompleted}, {Name: "second", State: hco.ItemInProgress}}
			out, err := table{clock: testingclock.NewFakePassiveClock(noon())}.ConvertToTable(t.Context(), plan, nil)
			if err != nil {
				t.Fatal(err)
			}
			if cells := out.Rows[0].Cells; cells[5] != "1/2" || cells[6] != c.current {
				t.Errorf("items %q, current %q, want %q", cells[5], cells[6], c.current)
			}
		})
	}
}

// TestWarningsOfTerms: a write that cannot be executed, or that approves nothing, returns a
// warning.
func TestWarningsOfTerms(t *testing.T) {
	s := &strategy{clock: testingclock.NewFakePassiveClock(noon())}
	soon := metav1.NewTime(noon().Add(time.Hour))
	over := metav1.NewTime(noon())
	night := &hco.PlanWindow{Schedule: "0 22 * * *", TimeZone: "UTC", Duration: metav1.Duration{Duration: time.Hour}}
	for name, c := range map[string]struct {
		spec hco.ConfigurationPlanSpec
		says string
	}{
		"in time":      {hco.ConfigurationPlanSpec{Expires: &soon}, ""},
		"over":         {hco.ConfigurationPlanSpec{Expires: &over}, "spec.expires has passed"},
		"never":        {hco.ConfigurationPlanSpec{Expires: &soon, Window: night}, "spec.expires comes before the window"},
		"window":       {hco.ConfigurationPlanSpec{Window: night}, ""},
		"both days":    {hco.ConfigurationPlanSpec{Window: &hco.PlanWindow{Schedule: "0 2 1-7 * 6", TimeZone: "UTC", Duration: metav1.Duration{Duration: time.Hour}}}, "one or the other, not only on days that are both"},
		"own approval": {hco.ConfigurationPlanSpec{Action: hco.ActionApply, Approvals: 2}, "people other than those in status.requestedBy"},
		"one approval": {hco.ConfigurationPlanSpec{Action: hco.ActionApply}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plan := blank(hco.ActionDryRun)
			plan.Spec = c.spec
			s.PrepareForCreate(as("alice"), plan)
			if got := strings.Join(s.WarningsOnCreate(as("alice"), plan), "; "); !strings.Contains(got, c.says) || c.says == "" && got != "" {
				t.Errorf("create: %q, want %q", got, c.says)
			}
			stored := blank(hco.ActionDryRun)
			stored.Status = waiting()
			changed := stored.DeepCopy()
			changed.Spec = c.spec
			s.PrepareForUpdate(as("alice"), changed, stored)
			if got := strings.Join(s.WarningsOnUpdate(as("alice"), changed, stored), "; "); c.says != "" && !strings.Contains(got, c.says) {
				t.Errorf("update: %q, want %q", got, c.says)
			}
		})
	}
}

type said []string

func (s *said) AddWarning(_, text string) { *s = append(*s, text) }

// TestHistoryDropped: the answer mentions runs that are no longer stored.
func TestHistoryDropped(t *testing.T) {
	d := newDesk(t)
	for n := range int64(run.MaxRows + 3) {
		body := fmt.Appendf(nil, `{"plan":"u","run":%d,"profile":"p","planHash":"h"}`, n+1)
		if err := d.runs.Put(t.Context(), "a", run.Row{Plan: "u", Number: n + 1, Body: body}); err != nil {
			t.Fatal(err)
		}
		var warnings said
		found, err := d.History.Get(warning.WithWarningRecorder(t.Context(), &warnings), "a", nil)
		if err != nil {
			t.Fatal(err)
		}
		var want said
		if dropped := n + 1 - run.MaxRows; dropped > 0 {
			want = said{fmt.Sprintf("at least %d earlier runs are no longer kept: for each name of a plan, the newest 50 runs are kept, up to 1 MiB", dropped)}
		}
		if diff := cmp.Diff(want, warnings); diff != "" || len(found.(*v1alpha1.PlanHistory).Runs) != int(min(n+1, run.MaxRows)) {
			t.Fatalf("after run %d, %d rows, warnings (-want +got):\n%s", n+1, len(found.(*v1alpha1.PlanHistory).Runs), diff)
		}
	}
}

// half is a Differ for a caller who may read only some targets.
type half struct{ Differ }

func (half) Lacks(_ context.Context, target manifest.Ref) (string, error) {
	if target.Name == "secret" {
		return "get ks secret", nil
	}
	return "", nil
}

// TestExportNeedsAllTargets: a user who cannot read one target gets no export.
func TestExportNeedsAllTargets(t *testing.T) {
	d := newDesk(t)
	var objects []manifest.Object
	for _, name := range []string{"open", "secret"} {
		object, err := manifest.Digester{}.New(map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	status := waiting()
	status.Approval = &hco.PlanApproval{Username: "bob", PlanHash: status.PlanHash}
	var err error
	if status.Manifests, err = d.packs.Put(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	d.has(status)
	export := &ExportREST{store: d.Export.store, manifests: &ManifestsREST{packs: d.packs, differ: half{}}}
	if _, err := export.Get(as("alice"), "a", &metav1.GetOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "you cannot get ks secret") {
		t.Errorf("%v, want 403", err)
	}
	list, err := d.Export.Get(as("alice"), "a", &metav1.GetOptions{})
	if err != nil || len(list.(*hco.PlanManifestList).Items) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

// TestRequestersStay: another user's change does not remove a requester from the record. Recorded
// users can still change the plan.
func TestRequestersStay(t *testing.T) {
	d := newDesk(t)
	d.has(waiting())
	change := func(who string, minutes int) error {
		_, _, err := d.Plan.Update(as(who), "a", rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			plan := old.DeepCopyObject().(*hco.ConfigurationPlan)
			plan.Spec.Approvals, plan.Spec.ExpiresAfter = 2, &metav1.Duration{Duration: time.Duration(minutes) * time.Minute}
			return plan, nil
		}), nil, nil, false, &metav1.UpdateOptions{})
		return err
	}
	refused := 0
	for i := range 40 {
		before := d.plan()
		if err := change(fmt.Sprintf("user-%d", i), 60+i); err != nil {
			refused++
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "status.requestedBy has 16 users") {
				t.Fatalf("user-%d: %v", i, err)
			}
			if d.plan().ResourceVersion != before.ResourceVersion {
				t.Fatal("the refusal wrote")
			}
		}
		for _, name := range before.Status.RequestedBy {
			if !slices.Contains(d.plan().Status.RequestedBy, name) {
				t.Fatalf("%s is not in the record any more: %v", name, d.plan().Status.RequestedBy)
			}
		}
	}
	if refused == 0 {
		t.Error("nobody was refused")
	}
	for i, name := range d.plan().Status.RequestedBy {
		if err := change(name, 200+i); err != nil {
			t.Errorf("%s cannot change the plan: %v", name, err)
		}
	}
}
