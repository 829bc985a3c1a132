package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/hco/configurationplan"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// novel is a random sequence of acts on plans, with its invariants:
//
//   - Only the plan that is being executed writes. It holds the profile. It writes the item
//     whose turn it is, with the reviewed content, onto the reviewed state. Its approval is for
//     this plan and this run, by the required number of users, and not by its requester.
//   - No item begins outside the window of its plan, or after its end.
//   - At most one item is in progress, and only while its plan is in progress.
//   - At most one plan holds the profile.
type novel struct {
	*lab
	dice *rand.Rand
	acts []string
	// granted holds the plans that a user approved with their hash. standing holds the plans whose
	// first version was approved in advance, by uid. runs holds the executed runs.
	granted  map[string]bool
	standing map[string]bool
	runs     map[string]string
}

func (n *novel) broken(format string, args ...any) {
	n.t.Errorf("after %s:\n%s", strings.Join(n.acts, ", "), fmt.Sprintf(format, args...))
}

// wrote checks a write to the cluster before it happens.
func (n *novel) wrote(ref manifest.Ref, body []byte, live *unstructured.Unstructured) {
	var writer *v1alpha1.ConfigurationPlan
	for _, name := range n.plans() {
		if plan := n.plan(name); plan.Status.Phase == v1alpha1.PhaseInProgress {
			if writer != nil {
				n.broken("plans %s and %s are both executed", writer.Name, name)
			}
			writer = plan
		}
	}
	if writer == nil {
		n.broken("%s is written, and no plan is executed", ref.ID)
		return
	}
	status := writer.Status
	if n.claimed() != writer.Name {
		n.broken("%s is written for plan %s, and %q has the profile", ref.ID, writer.Name, n.claimed())
	}
	approval := status.Approval
	switch {
	case approval == nil:
		n.broken("%s is written without an approval", ref.ID)
		return
	case approval.PlanHash != status.PlanHash || approval.Run != status.Run:
		n.broken("%s is written in run %d of %s under an approval of %s for run %d", ref.ID, status.Run, status.PlanHash, approval.PlanHash, approval.Run)
	case approval.Mode == v1alpha1.ApprovalExplicit && !n.granted[approval.PlanHash]:
		n.broken("%s is written under an approval that nobody gave", ref.ID)
	case approval.Mode == v1alpha1.ApprovalStanding && !n.standing[string(writer.UID)]:
		n.broken("%s is written under a standing approval that nobody gave", ref.ID)
	}
	n.wroteFor(writer, ref)
	run := fmt.Sprintf("%s/%d", writer.UID, status.Run)
	if before, again := n.runs[run]; again && before != status.PlanHash {
		n.broken("run %s is of %s and of %s", run, before, status.PlanHash)
	}
	n.runs[run] = status.PlanHash
	if writer.Spec.OnConflict == v1alpha1.OnConflictBlock && governance.Conflict(writer.Spec, status.Items) != "" {
		n.broken("%s is written although the plan takes what it must not", ref.ID)
	}
	n.wroteItem(writer, ref, body, live)
}

func (n *novel) wroteFor(writer *v1alpha1.ConfigurationPlan, ref manifest.Ref) {
	who := governance.Approvers(writer.Status.Approval)
	slices.Sort(who)
	if len(slices.Compact(slices.Clone(who))) < governance.Needed(writer.Spec) {
		n.broken("%s is written, approved by %v, and %d have to", ref.ID, who, governance.Needed(writer.Spec))
	}
	for _, name := range who {
		if governance.Excluded(writer.Spec, writer.Status.RequestedBy, name) {
			n.broken("%s is written, approved by %s, who has asked for it", ref.ID, name)
		}
	}
}

func (n *novel) wroteItem(writer *v1alpha1.ConfigurationPlan, ref manifest.Ref, body []byte, live *unstructured.Unstructured) {
	for _, item := range writer.Status.Items {
		if item.State != v1alpha1.ItemInProgress {
			continue
		}
		if refOf(item).ID != ref.ID {
			n.broken("%s is written, and it is the turn of %s", ref.ID, item.TargetRef.Name)
		}
		if turn, err := governance.TurnAt(writer.Spec, item.StartedAt.Time); err != nil || !turn.Open || turn.Expired {
			n.broken("%s began at %s: %+v, %v", item.Name, item.StartedAt.UTC(), turn, err)
		}
		if now := rollout.Fingerprint(live); now != item.Fingerprint {
			n.broken("%s is written onto %s, and %s was reviewed", ref.ID, now, item.Fingerprint)
		}
		if body == nil {
			if item.Action != v1alpha1.ItemDelete {
				n.broken("%s is deleted, and %s was reviewed", ref.ID, item.Action)
			}
			return
		}
		var sent struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			n.broken("%s: %v", ref.ID, err)
		}
		if got := sent.Metadata.Annotations[v1alpha1.AppliedHashAnnotation]; got != item.Digest {
			n.broken("%s is written with %s, and %s was reviewed", ref.ID, got, item.Digest)
		}
		return
	}
	n.broken("%s is written, and no item is in progress: %s", ref.ID, states(writer))
}

// told checks a status when it is stored.
func (n *novel) told(plan *v1alpha1.ConfigurationPlan) {
	going := 0
	for _, item := range plan.Status.Items {
		if item.State == v1alpha1.ItemInProgress {
			going++
		}
	}
	if going > 1 || going > 0 && plan.Status.Phase != v1alpha1.PhaseInProgress {
		n.broken("plan %s is %s with items %s", plan.Name, plan.Status.Phase, states(plan))
	}
	if plan.Status.Phase != v1alpha1.PhaseCompleted && plan.Status.Message == "" && plan.Status.Phase != v1alpha1.PhaseDrafting && plan.Status.Phase != v1alpha1.PhasePending {
		n.broken("plan %s is %s and does not say why", plan.Name, plan.Status.Phase)
	}
}

// apply sets Apply, and records the approvals that this causes. A user who does not name the
// reviewed plan approves no waiting plan.
func (n *novel) apply(reviewed configurationplan.Reviewed, name string, changes ...spec) {
	before := n.plan(name)
	if err := n.editHaving(reviewed, name, append(changes, action(hco.ActionApply))...); err != nil {
		return
	}
	after := n.plan(name)
	said := reviewed.PlanHash != "" && reviewed.PlanHash == before.Status.PlanHash || reviewed.ResourceVersion == before.ResourceVersion || after.Spec.ApprovedPlanHash != before.Spec.ApprovedPlanHash || before.Spec.Action == v1alpha1.ActionApply
	if after.Status.Approval != nil && !said {
		n.broken("plan %s got approved by somebody who did not say what they have seen: %+v", name, after.Status.Approval)
	}
	n.grants(name, before.Status)
}

// grants records an approval that a write of spec caused.
func (n *novel) grants(name string, before v1alpha1.ConfigurationPlanStatus) {
	plan := n.plan(name)
	approval := plan.Status.Approval
	if approval == nil || before.Approval != nil && *before.Approval.Time.DeepCopy() == approval.Time && before.Approval.PlanHash == approval.PlanHash && before.Approval.Mode == approval.Mode {
		return
	}
	switch {
	case approval.Mode == v1alpha1.ApprovalStanding && before.Phase != "":
		n.broken("plan %s was %s with plan %s, and got a standing approval", name, before.Phase, before.PlanHash)
	case approval.Mode == v1alpha1.ApprovalStanding:
		n.standing[string(plan.UID)] = true
	case plan.Spec.ApprovedPlanHash == approval.PlanHash || before.Phase == v1alpha1.PhaseReviewRequired && before.PlanHash == approval.PlanHash:
		n.granted[approval.PlanHash] = true
	default:
		n.broken("plan %s was %s with plan %s, and %s got approved", name, before.Phase, before.PlanHash, approval.PlanHash)
	}
}

// deeds returns the possible acts, by name. Most of them fail at times, as they should.
func (n *novel) deeds() map[string]func(name string) {
	toggle := func(flag *bool) func(string) {
		return func(string) { n.cluster.mu.Lock(); *flag = !*flag; n.cluster.mu.Unlock() }
	}
	edit := func(changes ...spec) func(string) {
		return func(name string) {
			before := n.plan(name).Status
			if n.edit(name, changes...) == nil {
				n.grants(name, before)
			}
		}
	}
	return map[string]func(name string){
		"DryRun":   edit(action(hco.ActionDryRun)),
		"Ignore":   edit(action(hco.ActionIgnore)),
		"Apply":    func(name string) { n.apply(configurationplan.Reviewed{}, name) },
		"reviewed": func(name string) { n.apply(configurationplan.Reviewed{PlanHash: n.plan(name).Status.PlanHash}, name) },
		"as read": func(name string) {
			n.apply(configurationplan.Reviewed{ResourceVersion: n.plan(name).ResourceVersion}, name)
		},
		"as was": func(name string) {
			n.apply(configurationplan.Reviewed{ResourceVersion: "1", PlanHash: "sha256:another"}, name)
		},
		"options":  func(name string) { edit(interval(int32(60 + 60*n.dice.IntN(3))))(name) },
		"options+": func(name string) { n.apply(configurationplan.Reviewed{}, name, interval(int32(60+60*n.dice.IntN(3)))) },
		"policy": edit(func(p *hco.ConfigurationPlan) {
			p.Spec.FailurePolicy = map[hco.FailurePolicy]hco.FailurePolicy{hco.FailurePolicyAbort: hco.FailurePolicyContinue, hco.FailurePolicyContinue: hco.FailurePolicyAbort}[p.Spec.FailurePolicy]
		}),
		"conflict": edit(func(p *hco.ConfigurationPlan) {
			p.Spec.OnConflict = map[hco.ConflictPolicy]hco.ConflictPolicy{hco.OnConflictBlock: hco.OnConflictTake, hco.OnConflictTake: hco.OnConflictBlock}[p.Spec.OnConflict]
		}),
		"timeout": edit(within(time.Hour)),
		"pin": func(name string) {
			hash := n.plan(name).Status.PlanHash
			n.apply(configurationplan.Reviewed{}, name, func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = hash })
		},
		"unpin": edit(func(p *hco.ConfigurationPlan) { p.Spec.ApprovedPlanHash = "" }),
		"approve": func(name string) {
			if hash := n.plan(name).Status.PlanHash; n.approve(name, hash) == nil {
				n.granted[hash] = true
			}
		},
		"approve, bob":   func(name string) { n.approves("bob", name) },
		"approve, carol": func(name string) { n.approves("carol", name) },
		"edit, bob": func(name string) {
			_ = n.editAs("bob", configurationplan.Reviewed{}, name, []spec{carryOn, interval(int32(60 + 60*n.dice.IntN(3)))}[n.dice.IntN(2)])
		},
		"two people": func(name string) {
			if n.dice.IntN(3) == 0 {
				edit(people(2))(name)
			}
		},
		"window":    edit(nightly),
		"no window": edit(func(p *hco.ConfigurationPlan) { p.Spec.Window = nil }),
		"until":     func(name string) { edit(until(n.clock.Now().Add(time.Duration(n.dice.IntN(30)) * time.Hour)))(name) },
		"no end":    edit(func(p *hco.ConfigurationPlan) { p.Spec.Expires = nil }),
		"night":     func(name string) { n.night(name) },
		"retry":     func(name string) { _ = n.retry(name) },
		"rollback":  func(name string) { _ = n.rollback(name, 0) },
		"profile":   edit(func(p *hco.ConfigurationPlan) { p.Spec.RestoreRun = 0 }),
		"override": func(name string) {
			_ = n.edit(name, action(hco.ActionDryRun), override(map[string]string{"a": "b", "b": "a"}[name]))
		},
		"delete": func(name string) {
			if n.dice.IntN(3) == 0 {
				n.must(n.remove(name))
				_ = n.pass(name)
			}
		},
		"foreign": func(string) { n.cluster.set(descheduler(), "mallory", "Debug", "spec", "logLevel") },
		"field": func(string) {
			n.cluster.set(descheduler(), "mallory", int64(900+n.dice.IntN(2)), "spec", "deschedulingIntervalSeconds")
		},
		"field back": func(string) {
			n.cluster.set(descheduler(), "mallory", int64(60), "spec", "deschedulingIntervalSeconds")
		},
		"config":      func(string) { n.cluster.set(psi(), "mallory", []any{"psi=0"}, "spec", "kernelArguments") },
		"config gone": func(string) { n.cluster.erase(psi()) },
		"gone":        func(string) { n.cluster.erase(descheduler()) },
		"rendered":    func(string) { n.cluster.render("worker") },
		"half":        func(string) { n.cluster.render("worker"); n.cluster.progress("worker", 4, 2) },
		"rolled":      func(string) { n.cluster.roll("worker", 4) },
		"paused":      func(string) { n.cluster.set(poolID("worker"), "admin", n.dice.IntN(2) == 0, "spec", "paused") },
		"ignorant":    toggle(&n.cluster.ignorant),
		"blind":       toggle(&n.cluster.blind),
		"down":        toggle(&n.cluster.down),
		"missing": func(string) {
			kind := descheduler().GroupKind()
			n.cluster.missing[kind] = !n.cluster.missing[kind]
		},
		"refuse": func(string) {
			if n.cluster.refuse == nil {
				n.refusing(descheduler())
			} else {
				n.cluster.refuse = nil
			}
		},
		"rights": func(string) {
			if n.lacks = nil; n.dice.IntN(3) == 0 {
				n.lacks = []string{"patch machineconfigs"}
			}
		},
		"all well": func(string) { n.well() },
		"hour":     func(string) { n.clock.SetTime(n.clock.Now().Add(time.Hour)) },
		"day":      func(string) { n.clock.SetTime(n.clock.Now().Add(25 * time.Hour)) },
		"restart":  func(string) { n.restart() },
		"crash":    func(string) { n.fuse.arm(n.dice.IntN(6), n.dice.IntN(2) == 0) },
		"outage": func(string) {
			if n.outage == nil {
				n.outage = errors.New("etcd is away")
			} else {
				n.outage = nil
			}
		},
	}
}

// heal ends all faults, and all acts of users.
func (n *novel) heal() {
	n.fuse.mend()
	n.well()
	n.cluster.set(poolID("worker"), "admin", false, "spec", "paused")
	for range 6 {
		n.settle()
		n.cluster.roll("worker", 4)
		n.settle()
		for _, name := range n.plans() {
			if plan := n.plan(name); plan.Status.Phase == v1alpha1.PhaseInProgress {
				n.night(name)
			}
		}
	}
	n.settle()
}

// night moves the clock to the next window of a plan that waits for it.
func (n *novel) night(name string) {
	if window := n.plan(name).Status.Window; window != nil && window.OpensAt.After(n.clock.Now()) {
		n.clock.SetTime(window.OpensAt.Time)
	}
}

func (n *novel) approves(who, name string) {
	if hash := n.plan(name).Status.PlanHash; n.approveAs(who, name, hash) == nil {
		n.granted[hash] = true
	}
}

func (n *novel) well() {
	n.outage, n.lacks, n.cluster.refuse = nil, nil, nil
	n.cluster.ignorant, n.cluster.blind, n.cluster.down = false, false, false
	clear(n.cluster.missing)
}

// atRest checks the end state without obstacles: no plan is stuck, and every waiting plan has a
// reason.
func (n *novel) atRest() {
	active := 0
	for _, name := range n.plans() {
		plan := n.plan(name)
		switch plan.Status.Phase {
		case v1alpha1.PhasePending, v1alpha1.PhaseDrafting, v1alpha1.PhasePrerequisiteFailed, v1alpha1.PhaseInProgress:
			n.broken("plan %s is stuck: %s", name, n.states())
		}
		if plan.Status.Message == "" {
			n.broken("plan %s is %s and says nothing", name, plan.Status.Phase)
		}
		if governance.Active(plan.Status.Phase) {
			active++
			if n.claimed() != name {
				n.broken("plan %s is %s, and %q has the profile", name, plan.Status.Phase, n.claimed())
			}
		}
		if plan.Status.PlanHash != "" && governance.Active(plan.Status.Phase) && plan.Status.InputsHash != governance.InputsHash(plan.Spec) {
			n.broken("plan %s is %s and was computed from another spec", name, plan.Status.Phase)
		}
		if plan.Status.ObservedGeneration != plan.Generation {
			n.broken("plan %s is of generation %d, and %d was seen", name, plan.Generation, plan.Status.ObservedGeneration)
		}
	}
	if active > 1 {
		n.broken("%d plans have the profile: %s", active, n.states())
	}
}

// likely returns the act of a user who wants to continue. Without such acts most sequences stay in
// states where nothing can go wrong.
func (n *novel) likely(name string) string {
	if n.outage != nil || n.cluster.ignorant || n.cluster.blind || n.cluster.down || n.cluster.refuse != nil || len(n.lacks) > 0 || n.cluster.missing[descheduler().GroupKind()] {
		return "all well"
	}
	switch plan := n.plan(name); plan.Status.Phase {
	case v1alpha1.PhaseReviewRequired:
		return []string{"approve", "approve, bob", "approve, carol"}[n.dice.IntN(3)]
	case v1alpha1.PhaseScheduled:
		return []string{"night", "hour"}[n.dice.IntN(2)]
	case v1alpha1.PhaseInProgress:
		return []string{"rolled", "half", "foreign", "field"}[n.dice.IntN(4)]
	case v1alpha1.PhaseIgnored:
		return "DryRun"
	case v1alpha1.PhaseFailed, v1alpha1.PhaseExpired:
		if plan.Spec.Expires != nil {
			return "no end"
		}
		return "retry"
	case v1alpha1.PhaseDrifted, v1alpha1.PhaseCompleted, v1alpha1.PhaseCompletedWithErrors:
		return []string{"DryRun", "field", "field back", "rollback", "retry", "options"}[n.dice.IntN(6)]
	default:
		return "all well"
	}
}

func (n *novel) live(deeds int) {
	acts := n.deeds()
	var names []string
	for name := range acts {
		names = append(names, name)
	}
	slices.Sort(names)
	for range deeds {
		plans := n.plans()
		if len(plans) == 0 || len(plans) == 1 && n.dice.IntN(12) == 0 {
			name := "a"
			if slices.Contains(plans, "a") {
				name = "b"
			}
			changes := []spec{take}
			if n.dice.IntN(2) == 0 {
				changes = append(changes, action(hco.ActionApply))
			}
			n.acts = append(n.acts, "create "+name)
			if n.create(name, changes...) == nil {
				n.grants(name, v1alpha1.ConfigurationPlanStatus{})
			}
		} else {
			act, plan := names[n.dice.IntN(len(names))], plans[n.dice.IntN(len(plans))]
			if n.dice.IntN(2) == 0 {
				act = n.likely(plan)
			}
			n.acts = append(n.acts, act+" "+plan)
			acts[act](plan)
		}
		for range n.dice.IntN(4) {
			for _, name := range n.plans() {
				_ = n.pass(name)
				if n.fuse.dead() {
					n.restart()
				}
			}
		}
		if n.t.Failed() {
			return
		}
	}
}

// TestPlansProperties runs random sequences, in which the process dies at random writes. PLAN_SEED
// repeats a failed sequence. PLAN_SEQUENCES sets their number.
func TestPlansProperties(t *testing.T) {
	sequences, first := 12, uint64(1)
	if text := os.Getenv("PLAN_SEQUENCES"); text != "" {
		sequences, _ = strconv.Atoi(text)
	}
	if text := os.Getenv("PLAN_SEED"); text != "" {
		first, _ = strconv.ParseUint(text, 10, 64)
		sequences = 1
	}
	store := newStore(t)
	reached := map[string]bool{}
	for seed := first; seed < first+uint64(sequences); seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			n := &novel{
				lab: store.newLab(t).usual(), dice: rand.New(rand.NewPCG(seed, 1)),
				granted: map[string]bool{}, standing: map[string]bool{}, runs: map[string]string{},
			}
			n.cluster.written, n.stored = n.wrote, n.told
			n.live(60)
			if !t.Failed() {
				n.heal()
				n.atRest()
			}
			for _, move := range n.moves {
				reached[move] = true
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d of the transitions happened", len(reached))
	if sequences >= 12 && len(reached) < 25 {
		t.Errorf("only %d of the transitions happened: the sequences see too little", len(reached))
	}
}
