package clusterextensionrollout

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extensionrollout"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

// desk holds the endpoints over a real store, without a controller.
type desk struct {
	*testing.T
	served map[string]rest.Storage
	// lacks holds the rights that users do not have, such as "alice use b" or "bob approve".
	lacks map[string]bool
	clock *testclock.FakePassiveClock
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	etcd := storetest.Client(t)
	config := storagebackend.NewDefaultConfig("/desk", serializer.NewCodecFactory(scheme).LegacyCodec(v1alpha1.SchemeGroupVersion))
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(v1alpha1.SchemeGroupVersion, schema.GroupKind{Group: v1alpha1.GroupName})
	config.Transport.ServerList = etcd.Endpoints()
	d := &desk{T: t, lacks: map[string]bool{}, clock: testclock.NewFakePassiveClock(time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC))}
	served, err := NewStorage(Deps{Scheme: scheme, Authorizer: d, Clock: d.clock, OptsGetter: generic.RESTOptions{
		StorageConfig: config.ForResource(v1alpha1.Resource(resource)), Decorator: generic.UndecoratedStorage,
		ResourcePrefix: "olm.operatorframework.io/" + resource, DeleteCollectionWorkers: 1,
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(served[resource].Destroy)
	d.served = served
	return d
}

// Authorize implements authorizer.Authorizer.
func (d *desk) Authorize(_ context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
	right := asked.GetUser().GetName() + " " + asked.GetVerb()
	if asked.GetVerb() == "use" {
		if asked.GetName() == "" {
			return authorizer.DecisionDeny, "", nil // no user may use all targets
		}
		right += " " + asked.GetName()
	}
	if d.lacks[right] {
		return authorizer.DecisionDeny, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func as(who string) context.Context {
	ctx := genericrequest.WithUser(genericrequest.WithNamespace(genericrequest.NewContext(), ""), &user.DefaultInfo{Name: who})
	if who == user.APIServerUser {
		ctx = request.Internal(ctx)
	}
	return ctx
}

// has creates a rollout to three clusters; a fourth cluster already has the content. It writes the
// initial status as the controller does.
func (d *desk) has(name, by string) {
	d.Helper()
	rollout := &olm.ClusterExtensionRollout{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.SetLabel: "edge"}},
		Spec: olm.ClusterExtensionRolloutSpec{
			Set: olm.RolloutSet{Name: "edge", UID: "set", Digest: "sha256:spec"}, RequestedBy: by, DeadlineSeconds: 60,
			Waves:    []olm.RolloutWave{{Name: "canary", MaxUnavailable: 1}, {Name: "rest", MaxUnavailable: 1, ApprovalRequired: true}},
			Clusters: []olm.RolloutTarget{{Name: "a", UID: "1", Wave: "canary", After: "new"}, {Name: "b", UID: "2", Wave: "rest", After: "new"}, {Name: "c", UID: "3", Wave: "rest", After: "new"}, {Name: "d", UID: "4", Wave: "rest", Before: "new", After: "new", Present: true}},
		},
	}
	if _, err := d.served[resource].(*REST).Create(as(user.APIServerUser), rollout, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		d.Fatal(err)
	}
	d.become(name, nil)
}

func (d *desk) become(name string, states map[string]fleet.State) {
	d.Helper()
	_, _, err := d.served[resource+"/status"].(rest.Updater).Update(as(user.APIServerUser), name, rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
		read, err := versioned(old.(*olm.ClusterExtensionRollout))
		if err != nil {
			return nil, err
		}
		progress := extensionrollout.Progress(&read.Status)
		for cluster, state := range states {
			progress.Clusters[cluster] = fleet.At{State: state, Attempt: progress.Clusters[cluster].Attempt + 1, Since: d.clock.Now()}
		}
		situation := extensionrollout.Situation(&read.Spec, &read.Status, d.clock.Now())
		plan := extensionrollout.Plan(&read.Spec)
		next, report := plan.Step(progress, situation)
		extensionrollout.Record(&read.Status, next, "")
		extensionrollout.Say(name, plan, &read.Status, next, report, situation)
		changed := &olm.ClusterExtensionRollout{}
		return changed, v1alpha1.Convert_v1alpha1_ClusterExtensionRollout_To_olm_ClusterExtensionRollout(read, changed, nil)
	}), nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{})
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) read(name string) *v1alpha1.ClusterExtensionRollout {
	d.Helper()
	found, err := d.served[resource].(*REST).Get(as("alice"), name, &metav1.GetOptions{})
	if err != nil {
		d.Fatal(err)
	}
	read, err := versioned(found.(*olm.ClusterExtensionRollout))
	if err != nil {
		d.Fatal(err)
	}
	return read
}

func (d *desk) decide(who, verb, name, digest string, clusters ...string) error {
	_, err := d.served[resource+"/"+verb].(*DecisionREST).Create(as(who), name, &olm.RolloutRequest{Spec: olm.RolloutRequestSpec{Digest: digest, Clusters: clusters, Comment: "I want to " + verb}}, nil, &metav1.CreateOptions{})
	return err
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// TestApprove: a user other than the author, with the right to use every cluster, approves exactly
// the shown content.
func TestApprove(t *testing.T) {
	d := newDesk(t)
	d.has("edge-1", "alice")
	d.has("edge-2", "dave")
	digest := d.read("edge-2").Status.Digest
	for _, right := range []string{"carol use b", "carol use c", "carol use d", "bob use d", "erin approve"} {
		d.lacks[right] = true
	}
	for name, tc := range map[string]struct {
		who, digest, want string
		is                func(error) bool
	}{
		"the author":                                {"dave", digest, "another user must approve", apierrors.IsForbidden},
		"one who wrote the same content before":     {"alice", digest, "another user must approve", apierrors.IsForbidden},
		"a user who cannot use two of the clusters": {"carol", digest, "you lack b, c", apierrors.IsForbidden},
		"one without the verb":                      {"erin", digest, "you need the right to approve", apierrors.IsForbidden},
		"another digest":                            {"bob", "sha256:before", "read it again", apierrors.IsConflict},
		"no digest":                                 {"bob", "", "read it again", apierrors.IsConflict},
	} {
		if err := d.decide(tc.who, "approve", "edge-2", tc.digest); !tc.is(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := d.read("edge-2").Status.Approvals; len(got) > 0 {
		t.Fatalf("it is approved: %+v", got)
	}
	d.must(d.decide("bob", "approve", "edge-2", digest))
	if got := d.read("edge-2").Status.Approvals; len(got) != 1 || got[0].User != "bob" || got[0].Digest != digest || !got[0].Time.Time.Equal(d.clock.Now()) {
		t.Errorf("the approvals are %+v", got)
	}
	if err := d.decide("bob", "approve", "edge-2", digest); !apierrors.IsConflict(err) {
		t.Errorf("it is approved twice: %v", err)
	}
}

// TestApproveWave: a user who may use the clusters of a later wave approves it with the digest of
// the earlier waves' results.
func TestApproveWave(t *testing.T) {
	d := newDesk(t)
	d.has("edge-1", "alice")
	d.must(d.decide("bob", "approve", "edge-1", d.read("edge-1").Status.Digest))
	d.become("edge-1", map[string]fleet.State{"a": fleet.Succeeded})
	waits := d.read("edge-1").Status
	if waits.Wave != "rest" || waits.Digest == "" {
		t.Fatalf("no wave waits: %+v", waits)
	}
	d.lacks["carol use c"], d.lacks["dan use a"] = true, true
	if err := d.decide("carol", "approve", "edge-1", waits.Digest); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "you lack c") {
		t.Errorf("a user who cannot use a cluster of the wave: %v", err)
	}
	if err := d.decide("dan", "approve", "edge-1", d.read("edge-1").Status.Approvals[0].Digest); !apierrors.IsConflict(err) {
		t.Errorf("the digest of the rollout approves the wave: %v", err)
	}
	d.must(d.decide("dan", "approve", "edge-1", waits.Digest))
	if got := d.read("edge-1").Status.Approvals; len(got) != 2 || got[1].Wave != "rest" || got[1].User != "dan" {
		t.Errorf("the approvals are %+v", got)
	}
}

// TestDecide: halt, resume, retry and skip apply to the problems as they were shown.
func TestDecide(t *testing.T) {
	d := newDesk(t)
	d.has("edge-1", "alice")
	d.must(d.decide("bob", "approve", "edge-1", d.read("edge-1").Status.Digest))
	before := d.read("edge-1").Status.Troubles
	d.become("edge-1", map[string]fleet.State{"a": fleet.Failed})
	shown := d.read("edge-1").Status.Troubles
	for _, verb := range []string{"resume", "retry", "skip"} {
		if err := d.decide("bob", verb, "edge-1", before, "a"); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "read it again") {
			t.Errorf("%s takes the troubles of before: %v", verb, err)
		}
		d.lacks["erin "+verb] = true
		if err := d.decide("erin", verb, "edge-1", shown, "a"); !apierrors.IsForbidden(err) {
			t.Errorf("%s without the right: %v", verb, err)
		}
	}
	if err := d.decide("alice", "skip", "edge-1", shown, "a"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "alice wrote the ClusterExtensionSet: another user must skip clusters") {
		t.Errorf("the author of the set goes on without the canary: %v", err)
	}
	for want, clusters := range map[string][]string{"no cluster is named": nil, `cluster "x" is not part of the rollout`: {"a", "x"}, "cluster b is Pending": {"b"}} {
		if err := d.decide("bob", "retry", "edge-1", shown, clusters...); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("retry of %v: %v", clusters, err)
		}
	}
	state := func() v1alpha1.RolloutClusterStatus {
		all := d.read("edge-1").Status.Clusters
		return all[slices.IndexFunc(all, func(one v1alpha1.RolloutClusterStatus) bool { return one.Name == "a" })]
	}
	if got := state(); got.State != string(fleet.Failed) {
		t.Fatalf("a refused decision moved the cluster: %+v", got)
	}
	d.must(d.decide("bob", "retry", "edge-1", shown, "a"))
	if got := state(); got.State != string(fleet.Pending) || got.By != "bob" {
		t.Errorf("after the retry: %+v", got)
	}
	d.become("edge-1", map[string]fleet.State{"a": fleet.Failed})
	if err := d.decide("bob", "skip", "edge-1", shown, "a"); !apierrors.IsConflict(err) {
		t.Errorf("the failure of the second attempt is skipped by the digest of the first one: %v", err)
	}
	d.must(d.decide("bob", "skip", "edge-1", d.read("edge-1").Status.Troubles, "a"))
	if got := state(); got.State != string(fleet.Skipped) {
		t.Errorf("after the skip: %+v", got)
	}
	d.become("edge-1", nil)
	d.must(d.decide("carol", "halt", "edge-1", ""))
	if got := d.read("edge-1").Status.HaltedBy; got != "carol" {
		t.Errorf("it is halted by %q", got)
	}
	d.must(d.decide("bob", "resume", "edge-1", d.read("edge-1").Status.Troubles))
	if got := d.read("edge-1").Status.HaltedBy; got != "" {
		t.Errorf("it is halted by %q after a user resumed it", got)
	}
	var kept []string
	for _, one := range d.read("edge-1").Status.Decisions {
		kept = append(kept, fmt.Sprint(one.Verb, one.Clusters, one.Count, " by ", one.User, ": ", one.Comment))
	}
	if diff := cmp.Diff([]string{"retry[a] 1 by bob: I want to retry", "skip[a] 1 by bob: I want to skip", "halt[] 0 by carol: I want to halt", "resume[] 0 by bob: I want to resume"}, kept); diff != "" {
		t.Errorf("the decisions (-want +got):\n%s", diff)
	}
	for range 2 * keptDecisions {
		d.must(d.decide("carol", "halt", "edge-1", ""))
		d.must(d.decide("bob", "resume", "edge-1", d.read("edge-1").Status.Troubles))
	}
	if got := d.read("edge-1").Status.Decisions; len(got) != keptDecisions || got[keptDecisions-1].Verb != "resume" {
		t.Errorf("%d decisions are kept, the last one %+v", len(got), got[len(got)-1])
	}
}

// TestRecords: only Penstock creates a rollout or writes its status. The spec never changes.
func TestRecords(t *testing.T) {
	d := newDesk(t)
	d.has("edge-1", "alice")
	store := d.served[resource].(*REST)
	made := &olm.ClusterExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: "edge-2"}}
	if _, err := store.Create(as("alice"), made, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "only Penstock creates rollouts") {
		t.Errorf("a user creates one: %v", err)
	}
	change := func(do func(*olm.ClusterExtensionRollout)) rest.UpdatedObjectInfo {
		return rest.DefaultUpdatedObjectInfo(nil, func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
			changed := old.DeepCopyObject().(*olm.ClusterExtensionRollout)
			do(changed)
			return changed, nil
		})
	}
	status := change(func(one *olm.ClusterExtensionRollout) { one.Status.Completed = true })
	if _, _, err := d.served[resource+"/status"].(rest.Updater).Update(as("alice"), "edge-1", status, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a user writes the status: %v", err)
	}
	spec := change(func(one *olm.ClusterExtensionRollout) { one.Spec.Clusters[0].After = "other" })
	for _, who := range []string{"alice", user.APIServerUser} {
		if _, _, err := store.Update(as(who), "edge-1", spec, nil, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "never changes") {
			t.Errorf("%s changes the spec: %v", who, err)
		}
	}
}
