package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

// longestMessage limits the message of a condition, in bytes. The definition allows 32768, but
// fourteen messages of that size do not fit into an object in etcd.
const longestMessage = 4096

// Of returns the status for these facts. It is the previous status if nothing has changed, or if
// the pass is Pending without a message.
func Of(facts Facts) extension.Status {
	if facts.RevisionsErr == nil && facts.Outcome.Message == "" && (facts.Outcome.Result == "" || facts.Outcome.Result == Pending) {
		// A later event starts another pass.
		return facts.Extension.Status
	}
	w := &writer{generation: facts.Extension.Generation, now: facts.Now, status: copied(facts.Extension.Status)}
	if facts.RevisionsErr != nil {
		w.unknownRevisions(facts.RevisionsErr)
		return w.status
	}
	v := look(facts.Revisions)
	if facts.Extension.DeletionTimestamp != nil {
		w.deleting(v)
		return w.status
	}
	w.installed(v, facts.Outcome)
	w.set(Available, availability(v))
	w.activeRevisions(v)
	w.set(Progressing, progress(facts, v))
	if !w.knowsCatalogs(facts) {
		w.deprecations(facts.Deprecations, v)
		w.set(UpgradeAvailable, upgrade(facts, v))
	}
	ready, person := readiness(facts, v)
	w.set(Ready, ready)
	w.stalled(ready, person)
	return w.status
}

// knowsCatalogs reports whether the stored conditions about catalogs stay. They stay if they are
// about the present generation, and the process has just started and has not read the catalogs.
func (w *writer) knowsCatalogs(facts Facts) bool {
	said := meta.FindStatusCondition(w.status.Conditions, Deprecated)
	return facts.Outcome.Result == Pending && facts.Upgrades == nil && facts.Deprecations == nil && said != nil && said.ObservedGeneration == w.generation
}

// Same reports whether two statuses are equal. Time zones do not matter.
func Same(a, b extension.Status) bool { return equality.Semantic.DeepEqual(a, b) }

// copied copies the conditions, so that setting them does not change the object.
func copied(status extension.Status) extension.Status {
	status.Conditions = append([]metav1.Condition(nil), status.Conditions...)
	return status
}

type writer struct {
	generation int64
	now        time.Time
	status     extension.Status
}

func (w *writer) set(kind string, s said) { w.setIn(&w.status.Conditions, kind, s) }

// setIn sets a condition. The transition time is in full seconds, as it is stored.
func (w *writer) setIn(conditions *[]metav1.Condition, kind string, s said) {
	meta.SetStatusCondition(conditions, metav1.Condition{
		Type: kind, Status: s.status, Reason: s.reason, Message: text.Clip(text.Punctuated(s.message), longestMessage),
		ObservedGeneration: w.generation, LastTransitionTime: metav1.NewTime(w.now.Truncate(time.Second)),
	})
}

// unknownRevisions sets Installed and Ready to Unknown, and Progressing to Retrying, because the
// revisions cannot be read.
func (w *writer) unknownRevisions(err error) {
	w.set(Installed, said{metav1.ConditionUnknown, ReasonFailed, err.Error()})
	w.set(Progressing, said{metav1.ConditionTrue, ReasonRetrying, "retrying to get installed bundle"})
	w.set(Ready, said{metav1.ConditionUnknown, reasonRevisionsUnknown, "the revisions of this extension cannot be read: " + err.Error()})
	w.stalled(said{}, false)
}

// installed sets the condition Installed. As in OLM v1, the reason is Failed if nothing is
// installed and either nothing is being rolled out or the rollout has errors.
func (w *writer) installed(v view, outcome Outcome) {
	w.status.Install = nil
	if v.installed != nil {
		w.status.Install = v.installed.bundle()
		w.set(Installed, said{metav1.ConditionTrue, ReasonSucceeded,
			"Installed bundle " + imageOf(*v.installed) + " successfully"})
		return
	}
	reason := ReasonFailed
	switch latest := v.latest(); {
	case latest != nil && latest.progressing().reason != ReasonRetrying:
		reason = ReasonAbsent
	case latest == nil && (v.proposal != nil || outcome.Result == Pending || outcome.Result == ""):
		reason = ReasonAbsent
	}
	w.set(Installed, said{metav1.ConditionFalse, reason, "No bundle installed"})
}

// imageOf returns the image of a revision, or its name if it has no image.
func imageOf(r revision) string {
	if image := r.Annotations[olmv1alpha1.ReferenceAnnotation]; image != "" {
		return image
	}
	return "of " + r.Name
}

// availability returns the availability of the installed revision, or else of the revision that is
// being rolled out.
func availability(v view) said {
	switch {
	case v.installed != nil:
		return v.installed.available()
	case v.latest() != nil:
		return v.latest().available()
	}
	return said{metav1.ConditionFalse, ReasonAbsent, "No bundle installed"}
}

func (w *writer) stalled(ready said, person bool) {
	if !person {
		w.set(Stalled, said{metav1.ConditionFalse, reasonNotStalled, "nothing waits for a person"})
		return
	}
	w.set(Stalled, said{metav1.ConditionTrue, ready.reason, ready.message})
}
