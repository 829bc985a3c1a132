package screens

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

// Timeline has the events of an extension, or of all extensions and plans, newest first.
type Timeline struct {
	Asked   string  `json:"asked"`
	Entries []Entry `json:"entries"`
	// Omitted is the number of omitted earlier entries.
	Omitted int `json:"omitted,omitempty"`
	// Who and What are the values of all entries before a filter, to choose a filter from.
	Who  []string `json:"who"`
	What []string `json:"what"`
	// Refused lists the sources that are not shown, with reasons.
	Refused []string `json:"refused,omitempty"`
}

// Entry is one event.
type Entry struct {
	Time   string `json:"time"`
	Signal Signal `json:"signal,omitempty"`
	// What is the event, in the form of a reason.
	What string `json:"what"`
	// Who is the user who caused the event, or the field manager whose change was repaired; empty
	// for Penstock.
	Who string `json:"who,omitempty"`
	// Kind and Name identify the affected object.
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Message string `json:"message,omitempty"`
	// Count is the number of occurrences if there are several. Time is the last occurrence.
	Count int32 `json:"count,omitempty"`
}

// Names of events that are not reasons of conditions or events, and not phases of plans.
const (
	entryCreated  = "Created"
	entryProposed = "Proposed"
	entryApproved = "Approved"
	entryWentBack = "WentBack"
	entryDeleted  = "Deleted"
	entryBegan    = "RunBegan"
)

const (
	mostEntries = 300
	mostRuns    = 20
	mostChoices = 100
	// sameWithin is the largest time between an event and the entry of the same fact in history or
	// a condition.
	sameWithin = time.Minute

	kindRevision = "ClusterExtensionRevision"
	kindPlan     = "ConfigurationPlan"
)

// timeline reads the sources with the rights of the caller. It names the sources that the caller
// cannot read.
func (a *API) timeline(ctx context.Context, r *http.Request) (any, error) {
	asked := r.URL.Query()
	name := asked.Get("extension")
	if name != "" {
		if refusal := checkName(name); refusal != nil {
			return nil, refusal
		}
	}
	out := Timeline{Asked: time.Now().UTC().Format(time.RFC3339)}
	sources := []func(context.Context, string) ([]Entry, string, error){a.noted, a.pastRevisions}
	if name == "" {
		sources = append(sources, a.pastPlans)
	}
	found, left, failed := make([][]Entry, len(sources)), make([]string, len(sources)), make([]error, len(sources))
	var all sync.WaitGroup
	for n, read := range sources {
		all.Go(func() { found[n], left[n], failed[n] = read(ctx, name) })
	}
	all.Wait()
	for n, err := range failed {
		switch {
		case apierrors.IsForbidden(err):
			out.Refused = append(out.Refused, err.Error())
		case err != nil:
			return nil, err
		case left[n] != "":
			out.Refused = append(out.Refused, left[n])
		}
	}
	entries := joined(slices.Concat(found[1:]...), found[0])
	out.Who, out.What = choices(entries, func(e Entry) string { return e.Who }), choices(entries, func(e Entry) string { return e.What })
	who, what := asked.Get("who"), asked.Get("what")
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return who != "" && e.Who != who || what != "" && e.What != what })
	out.Omitted = max(0, len(entries)-mostEntries)
	out.Entries = entries[:len(entries)-out.Omitted]
	return out, nil
}

func choices(entries []Entry, of func(Entry) string) []string {
	values := map[string]bool{}
	for _, one := range entries {
		values[of(one)] = true
	}
	delete(values, "")
	sorted := slices.Sorted(maps.Keys(values))
	return append([]string{}, sorted[:min(mostChoices, len(sorted))]...)
}

// joined sorts entries, newest first. It omits an event if an entry from history or a condition is
// about the same fact.
func joined(told, events []Entry) []Entry {
	kept := []Entry{}
	known, twice := map[Entry][]time.Time{}, map[Entry]bool{}
	for n, one := range slices.Concat(told, events) {
		at, err := time.Parse(time.RFC3339, one.Time)
		if err != nil || n < len(told) && twice[one] {
			continue
		}
		twice[one] = true
		same := Entry{What: one.What, Kind: one.Kind, Name: one.Name}
		if n < len(told) {
			known[same] = append(known[same], at)
		} else if slices.ContainsFunc(known[same], func(other time.Time) bool { return at.Sub(other).Abs() < sameWithin }) {
			continue
		}
		kept = append(kept, one)
	}
	// Within a second, each source lists its entries in the order of their occurrence.
	slices.Reverse(kept)
	slices.SortStableFunc(kept, func(a, b Entry) int { return cmp.Compare(b.Time, a.Time) })
	return kept
}

// pastRevisions returns entries from the history of revisions, and from their conditions: each
// present state and its begin.
func (a *API) pastRevisions(ctx context.Context, name string) ([]Entry, string, error) {
	selected := metav1.ListOptions{FieldSelector: olmv1alpha1.LifecycleStateField + "!=" + string(olmv1alpha1.LifecycleStateArchived)}
	api := a.penstock.OlmV1alpha1()
	if name != "" {
		selected.LabelSelector = olmv1alpha1.ChainLabel + "=" + name
	}
	var list *olmv1alpha1.ClusterExtensionRevisionList
	var failed error
	var listed sync.WaitGroup
	listed.Go(func() { list, failed = api.ClusterExtensionRevisions().List(ctx, selected) })
	histories, err := a.histories(ctx, name)
	listed.Wait()
	if err == nil {
		err = failed
	}
	if err != nil || len(histories) == 0 {
		return nil, "", err
	}
	var entries []Entry
	// why holds the reasons that users gave for resuming revisions.
	why := map[string]string{}
	for i := range list.Items {
		revision := &list.Items[i]
		if revision.Spec.LifecycleState == olmv1alpha1.LifecycleStateActive {
			why[revision.Name] = revision.Annotations[overview.ReasonAnnotation]
		}
		entries = append(entries, ofConditions(revision)...)
	}
	for i := range histories {
		for j := range histories[i].Revisions {
			row := &histories[i].Revisions[j]
			entries = append(entries, ofRecord(row, why[row.Name])...)
		}
		for j := range histories[i].Repairs {
			entries = append(entries, ofRepair(&histories[i].Repairs[j]))
		}
	}
	return entries, "", nil
}

// histories returns the histories of all extensions, or the history of the given name, if it
// exists.
func (a *API) histories(ctx context.Context, name string) ([]olmv1alpha1.RevisionHistory, error) {
	api := a.penstock.OlmV1alpha1().RevisionHistories()
	if name == "" {
		list, err := api.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		return list.Items, nil
	}
	one, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []olmv1alpha1.RevisionHistory{*one}, nil
}

func ofRecord(row *olmv1alpha1.RevisionRecord, why string) []Entry {
	var entries []Entry
	add := func(at *metav1.Time, signal Signal, what, who, message string) {
		if at != nil {
			entries = append(entries, Entry{Time: when(at), Signal: signal, What: what, Who: who, Kind: kindRevision, Name: row.Name, Message: text.Line(message, mostMessage)})
		}
	}
	version := ""
	if row.Version != "" {
		version = "version " + row.Version
	}
	said := listed(version, row.Cause)
	switch {
	case row.RollbackOf != "":
		add(row.CreatedAt, "", entryWentBack, row.RequestedBy, listed("to "+row.RollbackOf, said))
	case row.ApprovedAt != nil:
		add(row.CreatedAt, "", entryProposed, "", said)
		add(row.ApprovedAt, "", entryApproved, row.RequestedBy, listed(version, why))
	default:
		add(row.CreatedAt, "", entryCreated, row.RequestedBy, said)
	}
	add(row.CompletedAt, Healthy, olmv1alpha1.ConditionSucceeded, "", version)
	add(row.DeletedAt, "", entryDeleted, "", version)
	return entries
}

// ofRepair returns the entry of a repaired change of another writer.
func ofRepair(repair *olmv1alpha1.RepairRecord) Entry {
	of := repair.Object
	one := Entry{
		Time: when(&repair.LastAt), Signal: Review, What: entryRepaired, Who: repair.Manager, Kind: kindRevision, Name: repair.Revision,
		Message: text.Line(fmt.Sprintf("%s %s: %s", of.Kind, strings.TrimPrefix(of.Namespace+"/"+of.Name, "/"), repair.Message), mostMessage),
	}
	if repair.Count > 1 {
		one.Count = repair.Count
		one.Message += ", first " + when(&repair.FirstAt)
	}
	return one
}

func listed(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(one string) bool { return one == "" }), ": ")
}

func ofConditions(revision *olmv1alpha1.ClusterExtensionRevision) []Entry {
	var entries []Entry
	add := func(c *metav1.Condition, signal Signal, what string) {
		entries = append(entries, Entry{Time: when(&c.LastTransitionTime), Signal: signal, What: what, Kind: kindRevision, Name: revision.Name, Message: text.Line(c.Reason+": "+c.Message, mostMessage)})
	}
	conditions := revision.Status.Conditions
	for kind, signal := range map[string]Signal{olmv1alpha1.ConditionFailing: NeedsAttention, olmv1alpha1.ConditionStalled: NeedsAttention, olmv1alpha1.ConditionHeld: Review, olmv1alpha1.ConditionDriftReported: Review, olmv1alpha1.ConditionRolledBack: NeedsAttention} {
		if c := meta.FindStatusCondition(conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
			add(c, signal, kind)
		}
	}
	// Two conditions may have the same entry.
	slices.SortFunc(entries, func(a, b Entry) int { return cmp.Compare(a.What, b.What) })
	entries = slices.CompactFunc(entries, func(a, b Entry) bool { return a.Message == b.Message && a.Signal == b.Signal })
	if c := meta.FindStatusCondition(conditions, olmv1alpha1.ConditionProgressing); c != nil && c.Reason == reasonFrozen {
		add(c, Review, reasonFrozen)
	}
	return entries
}

// The reasons of events about repairs: a changed object was restored, or a deleted object created
// again.
const (
	entryRepaired  = "Repaired"
	entryRecreated = "Recreated"
)

// noted returns entries from events of Penstock about extensions, revisions and plans. It omits
// repairs: the history has them, and for longer.
func (a *API) noted(ctx context.Context, name string) ([]Entry, string, error) {
	events, more, err := a.eventsIn(ctx, metav1.NamespaceDefault, "source=penstock", func(of *corev1.ObjectReference) bool {
		switch of.Kind {
		case kindRevision:
			chain, _, known := olm.ChainOf(of.Name)
			return known && (name == "" || chain == name)
		case extension.Kind.Kind:
			return name == "" || of.Name == name
		default:
			return name == "" && of.Kind == kindPlan
		}
	})
	if err != nil {
		return nil, "", err
	}
	entries := make([]Entry, 0, len(events))
	for _, event := range events {
		if event.Reason != entryRepaired && event.Reason != entryRecreated {
			entries = append(entries, ofEvent(event))
		}
	}
	if more {
		return entries, fmt.Sprintf("there are more than %d events", eventsRead), nil
	}
	return entries, "", nil
}

func ofEvent(event Event) Entry {
	one := Entry{Time: event.Time, What: event.Reason, Kind: event.Kind, Name: event.Name, Message: event.Message}
	if event.Count > 1 {
		one.Count = event.Count
	}
	switch {
	case event.Type == corev1.EventTypeWarning:
		one.Signal = NeedsAttention
	case event.Reason == olmv1alpha1.ConditionSucceeded:
		one.Signal = Healthy
	}
	return one
}

func (a *API) pastPlans(ctx context.Context, _ string) ([]Entry, string, error) {
	api := a.penstock.HcoV1alpha1().ConfigurationPlans()
	list, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	plans := list.Items
	slices.SortStableFunc(plans, func(a, b hcov1alpha1.ConfigurationPlan) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	var entries []Entry
	run := 0
	for i := range plans {
		plan := &plans[i]
		entries = append(entries, Entry{Time: when(&plan.CreationTimestamp), What: entryCreated, Who: strings.Join(plan.Status.RequestedBy, ", "), Kind: kindPlan, Name: plan.Name, Message: "profile " + string(plan.Spec.Profile)})
		if plan.Status.Approval != nil {
			entries = append(entries, ofApproval(plan.Name, *plan.Status.Approval)...)
		}
		if plan.Status.Run == 0 {
			continue
		}
		if run++; run > mostRuns {
			continue
		}
		history, err := api.GetHistory(ctx, plan.Name, metav1.GetOptions{})
		if apierrors.IsForbidden(err) {
			return entries, err.Error(), nil
		}
		if err != nil {
			return nil, "", err
		}
		for j := range history.Runs {
			entries = append(entries, ofRun(plan.Name, &history.Runs[j])...)
		}
	}
	if run > mostRuns {
		return entries, fmt.Sprintf("the runs of %s are not read, those of the %d newest are", text.Count(run-mostRuns, "older plan"), mostRuns), nil
	}
	return entries, "", nil
}

func ofApproval(plan string, approval hcov1alpha1.PlanApproval) []Entry {
	var entries []Entry
	add := func(at metav1.Time, who, comment string) {
		entries = append(entries, Entry{Time: when(&at), What: entryApproved, Who: who, Kind: kindPlan, Name: plan, Message: text.Line(comment, mostMessage)})
	}
	add(approval.Time, approval.Username, approval.Comment)
	for _, other := range approval.Others {
		add(other.Time, other.Username, other.Comment)
	}
	return entries
}

func ofRun(plan string, run *hcov1alpha1.PlanRun) []Entry {
	entries := ofApproval(plan, run.Approval)
	said := fmt.Sprintf("run %d", run.Run)
	if run.RestoreRun != 0 {
		said += fmt.Sprintf(", undo of run %d", run.RestoreRun)
	}
	entries = append(entries, Entry{Time: when(&run.StartedAt), What: entryBegan, Kind: kindPlan, Name: plan, Message: said})
	if run.EndedAt != nil {
		signal := NeedsAttention
		if run.Outcome == hcov1alpha1.PhaseCompleted {
			signal = Healthy
		}
		entries = append(entries, Entry{Time: when(run.EndedAt), Signal: signal, What: string(run.Outcome), Kind: kindPlan, Name: plan, Message: said})
	}
	return entries
}
