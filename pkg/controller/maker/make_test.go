package maker

import (
	"context"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/note"
)

type front struct {
	steps    []string
	approval string
	same     bool
	// nobody is true for a policy that returns no identity.
	nobody bool
	stops  string
	review bool
	diff   *olmv1alpha1.RevisionDiff
	wrote  Identity
}

func (f *front) step(name string) *Outcome {
	f.steps = append(f.steps, name)
	if f.stops == name {
		return Stop(Failed, name, "")
	}
	return nil
}

func (f *front) Decide(context.Context) (Identity, *Outcome) {
	identity := Identity{Approval: f.approval}
	if f.approval == "" && !f.nobody {
		identity.As = &user.DefaultInfo{Name: "alice"}
	}
	if f.review {
		identity.Review = (&Chain{}).NewReview(note.DefaultHoldOn(), "Reviewed")
	}
	return identity, f.step("Decide")
}

func (f *front) Diff(context.Context, Identity, string) (*olmv1alpha1.RevisionDiff, *Outcome) {
	return f.diff, f.step("Diff")
}

func (f *front) MayPropose(context.Context, Identity, string) *Outcome { return f.step("MayPropose") }

func (f *front) Render(context.Context, Identity) (string, bool, *Outcome) {
	return "content", f.same, f.step("Render")
}

func (f *front) Keep(_ context.Context, newest *olmv1alpha1.ClusterExtensionRevision, content string) *Outcome {
	f.step("Keep " + strings.TrimSpace(newest.Name+" "+content))
	return Stop(Current, "", "")
}

func (f *front) Propose(context.Context, Identity) *Outcome { return f.step("Propose") }

func (f *front) Write(_ context.Context, identity Identity, content string) *Outcome {
	f.wrote = identity
	f.step("Write " + content)
	return Stop(Awaited, "", "")
}

// revision returns a revision of a chain, made from a digest.
func revision(name, digest string, state olmv1alpha1.LifecycleState) olmv1alpha1.ClusterExtensionRevision {
	return olmv1alpha1.ClusterExtensionRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"made-of": digest}},
		Spec:       olmv1alpha1.ClusterExtensionRevisionSpec{LifecycleState: state},
	}
}

func chainOf(newestFirst ...olmv1alpha1.ClusterExtensionRevision) *Chain {
	return &Chain{Name: "lamp", Revisions: newestFirst, Rules: Rules{MadeOf: "made-of", NeverApproved: func(one *olmv1alpha1.ClusterExtensionRevision) bool {
		return one.Annotations["proposed"] == "true"
	}}}
}

// TestMake: each step runs only after all earlier steps have let the pass continue.
func TestMake(t *testing.T) {
	const active, archived = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStateArchived
	for name, tc := range map[string]struct {
		chain *Chain
		front front
		again bool
		steps string
		want  Reason
	}{
		"First":      {chainOf(), front{}, false, "Decide, Render, Write content", Awaited},
		"Current":    {chainOf(revision("lamp-1", "now", active)), front{}, false, "Keep lamp-1", Current},
		"Rewritten":  {chainOf(revision("lamp-1", "now", active)), front{}, true, "Decide, Render, Write content", Awaited},
		"Changed":    {chainOf(revision("lamp-1", "before", active)), front{}, false, "Decide, Render, Write content", Awaited},
		"Same":       {chainOf(revision("lamp-1", "before", active)), front{same: true}, false, "Decide, Render, Keep lamp-1 content", Current},
		"Archived":   {chainOf(revision("lamp-1", "now", archived)), front{}, false, "Decide, Render, Write content", Awaited},
		"Proposal":   {chainOf(revision("lamp-1", "before", active)), front{approval: "by hand"}, false, "Decide, Propose, Render, Write content", Awaited},
		"NoPolicy":   {chainOf(), front{stops: "Decide"}, false, "Decide", Failed},
		"Nobody":     {chainOf(), front{nobody: true}, false, "Decide", Failed},
		"NoMore":     {chainOf(), front{approval: "by hand", stops: "Propose"}, false, "Decide, Propose", Failed},
		"Judged":     {chainOf(), front{stops: "Render"}, false, "Decide, Render", Failed},
		"Reviewed":   {chainOf(), front{review: true, diff: noted("Info/Image")}, false, "Decide, Render, Diff, Write content", Awaited},
		"Chosen":     {chainOf(), front{review: true}, false, "Decide, Render, Diff, Write content", Awaited},
		"Held":       {chainOf(), front{review: true, diff: noted("Critical/Deleted")}, false, "Decide, Render, Diff, MayPropose, Propose, Write content", Awaited},
		"HeldSame":   {chainOf(revision("lamp-1", "before", active)), front{review: true, same: true, diff: noted("Critical/Deleted")}, false, "Decide, Render, Keep lamp-1 content", Current},
		"HeldOnce":   {chainOf(revision("lamp-1", "before", active)), front{review: true, diff: noted("Critical/Deleted"), stops: "Propose"}, false, "Decide, Render, Diff, MayPropose, Propose", Failed},
		"HeldDenied": {chainOf(), front{review: true, diff: noted("Critical/Deleted"), stops: "MayPropose"}, false, "Decide, Render, Diff, MayPropose", Failed},
		"Unread":     {chainOf(), front{review: true, stops: "Diff"}, false, "Decide, Render, Diff", Failed},
		"Manual":     {chainOf(), front{review: true, approval: "by hand"}, false, "Decide, Propose, Render, Write content", Awaited},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := Make(t.Context(), tc.chain, "now", tc.again, &tc.front, &tc.front)
			if wrote := tc.front.wrote; wrote.Approval != "" && tc.front.approval == "" && wrote.As != nil {
				t.Errorf("what is held is written in the name of %s", wrote.As.GetName())
			}
			if got := strings.Join(tc.front.steps, ", "); got != tc.steps || outcome.Reason != tc.want {
				t.Errorf("%s after %s, want %s after %s", outcome.Reason, got, tc.want, tc.steps)
			}
		})
	}
}

// TestMakeKeepsReasons: a version that a review held keeps its reasons while reviews are requested,
// also if approval is needed for another reason.
func TestMakeKeepsReasons(t *testing.T) {
	for reviewed, want := range map[bool]string{
		true: "", false: `{"metadata":{"annotations":{"penstock.dev/held-by":null,"penstock.dev/held-under":null,"penstock.dev/lifecycle-reason":"by hand"},"resourceVersion":"","uid":""}}`,
	} {
		held := revision("lamp-2", "now", olmv1alpha1.LifecycleStatePaused)
		held.Annotations["proposed"], held.Annotations[olmv1alpha1.HeldUnderAnnotation] = "true", "former"
		chain := chainOf(held, revision("lamp-1", "before", olmv1alpha1.LifecycleStateActive))
		var written []string
		chain.Own = store{written: &written}
		asked := &front{approval: "by hand", review: reviewed, stops: "Propose"}
		Make(t.Context(), chain, "now", false, asked, asked)
		if got := strings.Join(written, ", "); got != want {
			t.Errorf("with reviews asked for (%v) it wrote %q, want %q", reviewed, got, want)
		}
	}
}

// TestNewest: proposals do not count, and no revision below an archived one is the newest.
func TestNewest(t *testing.T) {
	const active, paused, archived = olmv1alpha1.LifecycleStateActive, olmv1alpha1.LifecycleStatePaused, olmv1alpha1.LifecycleStateArchived
	proposed := func(name string, state olmv1alpha1.LifecycleState) olmv1alpha1.ClusterExtensionRevision {
		out := revision(name, "now", state)
		out.Annotations["proposed"] = "true"
		return out
	}
	deleting := revision("lamp-2", "now", active)
	deleting.DeletionTimestamp = &metav1.Time{}
	one := revision("lamp-1", "now", active)
	for name, tc := range map[string]struct {
		chain     *Chain
		newest    string
		proposals []string
	}{
		"None":     {chainOf(), "", nil},
		"Paused":   {chainOf(revision("lamp-2", "now", paused), one), "lamp-2", nil},
		"Proposed": {chainOf(proposed("lamp-3", paused), proposed("lamp-2", paused), one), "lamp-1", []string{"lamp-3", "lamp-2"}},
		"Declined": {chainOf(proposed("lamp-2", archived), one), "lamp-1", nil},
		"Archived": {chainOf(revision("lamp-2", "now", archived), one), "", nil},
		"Deleting": {chainOf(deleting, one), "", nil},
	} {
		newest := ""
		if found := tc.chain.Newest(); found != nil {
			newest = found.Name
		}
		var proposals []string
		for _, found := range tc.chain.Proposals() {
			proposals = append(proposals, found.Name)
		}
		if newest != tc.newest || !slices.Equal(proposals, tc.proposals) {
			t.Errorf("%s: newest is %q, proposals are %v", name, newest, proposals)
		}
	}
}
