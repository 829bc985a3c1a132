package screens

import (
	"context"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/penstock-project/penstock/pkg/apis/olm/approval"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/extension"
)

// Extension is an extension with its stored revisions, newest first.
type Extension struct {
	Name string       `json:"name"`
	Row  ExtensionRow `json:"row"`
	// Advice lists the obstacles; the first entry matters most.
	Advice    []advice.Advice `json:"advice"`
	Revisions []Revision      `json:"revisions"`
}

// Wanted is the content that a ClusterExtension requests, and the extension's state.
type Wanted struct {
	Row ExtensionRow `json:"row"`
	// UID and Generation identify the shown object: a write names them, and fails when the object has changed.
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// Source is Catalog, Image or Chart. Package, Version (a range) and Channels are for a catalog.
	Source    string   `json:"source"`
	Package   string   `json:"package,omitempty"`
	Version   string   `json:"version,omitempty"`
	Channels  []string `json:"channels,omitempty"`
	Namespace string   `json:"namespace"`
	// Installed is true if a version is installed.
	Installed bool `json:"installed,omitempty"`
}

// Revision is one revision of an extension.
type Revision struct {
	Name   string `json:"name"`
	Number int64  `json:"number"`
	// UID and Generation identify the shown object: a write names them, and fails when the object has changed.
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	Version    string `json:"version,omitempty"`
	// Target is the other cluster of the rollout; empty for this cluster.
	Target string `json:"target,omitempty"`
	// Lifecycle is Active, Paused, Archived or Deleting.
	Lifecycle string `json:"lifecycle"`
	Signal    Signal `json:"signal"`
	// State and Message are from the condition that decides. Since is the time when it began.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	Since   string `json:"since,omitempty"`
	Created string `json:"created,omitempty"`
	// By is the user who requested or approved the revision.
	By    string `json:"by,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Reason is the reason that a user gave for pausing, resuming or archiving the revision.
	Reason     string `json:"reason,omitempty"`
	RollbackOf string `json:"rollbackOf,omitempty"`
	// Proposed is true for the newest revision while it waits for a review.
	Proposed bool `json:"proposed,omitempty"`
	// Diff is the name of the diff that shows the revision's changes.
	Diff    string  `json:"diff"`
	Ready   int     `json:"ready"`
	Objects int     `json:"objects"`
	Phases  []Phase `json:"phases"`
}

// Phase is a phase of a revision.
type Phase struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Objects   int32  `json:"objects"`
	Available int32  `json:"available"`
	// Started and Done are in RFC 3339. They are empty if the phase did not begin, or was never
	// available.
	Started string `json:"started,omitempty"`
	Done    string `json:"done,omitempty"`
	// Failing are the objects that hold back the phase. Omitted is the number of further failing
	// objects.
	Failing []v1alpha1.ObjectFailure `json:"failing,omitempty"`
	Omitted int32                    `json:"omitted,omitempty"`
}

// watchExtension sends an extension and the request of its ClusterExtension whenever they change.
func (a *API) watchExtension(ctx context.Context, r *http.Request, send func(Message)) error {
	name := r.PathValue("name")
	ctx, stop := context.WithCancel(ctx)
	known := &oneExtension{name: name, send: send}
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { a.watchWanted(ctx, known) })
	source := follow.Revisions(a.penstock, metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + name})
	return one(ctx, source, send, known.revised)
}

// oneExtension combines the changes of revisions with those of their ClusterExtension.
type oneExtension struct {
	name string
	send func(Message)

	mu    sync.Mutex
	found overview.Extension
	heard bool
}

func (o *oneExtension) revised(all []*v1alpha1.ClusterExtensionRevision) Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heard, o.found.Name, o.found.Revisions = true, o.name, nil
	for _, found := range overview.Of(all) {
		if found.Name == o.name {
			o.found.Revisions = found.Revisions
		}
	}
	return o.message()
}

// message returns the message for the present extension. The lock is held.
func (o *oneExtension) message() Message {
	if o.found.Newest() == nil {
		return Message{Kind: "extension"}
	}
	return Message{Kind: "extension", Extension: extensionOf(o.found)}
}

// asks stores the request of the ClusterExtension, and sends the resulting change.
func (o *oneExtension) asks(asked *overview.Asked) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.found.Asked = asked
	if o.heard && o.found.Newest() != nil {
		o.send(o.message())
	}
}

// watchWanted sends the request of a ClusterExtension whenever it changes. If the object does not
// exist, or the user cannot read it, it sends nothing: the revisions are shown without it.
func (a *API) watchWanted(ctx context.Context, known *oneExtension) {
	source := a.clusterExtensions()
	source.Options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, known.name).String()
	_ = source.Follow(ctx, func(error) {}, func(all []*unstructured.Unstructured) (bool, error) {
		said := Message{Kind: "wanted"}
		var asked *overview.Asked
		for _, object := range all {
			if read, err := extension.From(object); err == nil {
				now := overview.Ask(read)
				asked, said.Wanted = &now, wantedOf(read)
			}
		}
		known.send(said)
		known.asks(asked)
		return false, nil
	})
}

func wantedOf(read *extension.Extension) *Wanted {
	asked := overview.Ask(read)
	out := &Wanted{Row: extensionRow(overview.Extension{Name: read.Name, Asked: &asked}), UID: string(read.UID), Generation: read.Generation, Source: read.Spec.Source.SourceType, Namespace: read.Spec.Namespace, Installed: read.Status.Install != nil}
	if of := read.Spec.Source.Catalog; of != nil {
		out.Package, out.Version, out.Channels = of.PackageName, of.Version, of.Channels
	}
	return out
}

// one follows the object of a screen, and sends it whenever it changes.
func one[T metav1.Object](ctx context.Context, source follow.Source[T], send func(Message), project func([]T) Message) error {
	troubled, synced := false, false
	return source.Follow(ctx, func(err error) { troubled = true; send(trouble("", err)) }, func(all []T) (bool, error) {
		if troubled {
			troubled = false
			send(Message{Kind: kindHeard})
		}
		send(project(all))
		if !synced {
			synced = true
			send(Message{Kind: kindSynced})
		}
		return false, nil
	})
}

func extensionOf(e overview.Extension) *Extension {
	out := &Extension{Name: e.Name, Row: extensionRow(e), Advice: advice.Extension(e)}
	proposed := e.Proposed()
	for _, revision := range e.Revisions {
		one := revisionOf(e, revision)
		one.Proposed = revision == proposed && approval.Pending(revision.Annotations) == nil
		out.Revisions = append(out.Revisions, one)
	}
	return out
}

func revisionOf(e overview.Extension, revision *v1alpha1.ClusterExtensionRevision) Revision {
	given := advice.Revision(revision, e.Revisions)
	one := Revision{
		Name: revision.Name, Number: revision.Spec.Revision, UID: string(revision.UID), Generation: revision.Generation,
		Version: overview.Version(revision), Lifecycle: overview.State(revision), Signal: given.Signal,
		State: given.State(), Message: given.Because, Since: when(&given.Since), Created: when(&revision.CreationTimestamp),
		Cause: revision.Annotations[v1alpha1.ChangeCauseAnnotation], Reason: revision.Annotations[overview.ReasonAnnotation],
		RollbackOf: revision.Annotations[v1alpha1.RollbackOfAnnotation], Diff: ".." + revision.Name, Phases: phasesOf(revision),
	}
	// A proposal is compared with the rolled out revision, which may differ from the previous one.
	if revision.Spec.LifecycleState == v1alpha1.LifecycleStatePaused {
		one.Diff = comparison(e, revision)
	}
	if revision.Spec.TargetRef != nil {
		one.Target = revision.Spec.TargetRef.Name
	}
	if asked := revision.Status.RequestedBy; asked != nil {
		one.By = asked.Username
	}
	// Only Penstock writes this annotation, when a user approves its proposal.
	if approver := revision.Annotations[v1alpha1.ApprovedByAnnotation]; approver != "" {
		one.By = approver
	}
	one.Ready, one.Objects = overview.Objects(revision)
	return one
}

func phasesOf(revision *v1alpha1.ClusterExtensionRevision) []Phase {
	reported := map[string]*v1alpha1.PhaseStatus{}
	for i := range revision.Status.Phases {
		reported[revision.Status.Phases[i].Name] = &revision.Status.Phases[i]
	}
	phases := []Phase{}
	for i := range revision.Spec.Phases {
		name := revision.Spec.Phases[i].Name
		one := Phase{Name: name, State: string(v1alpha1.PhaseStatePending), Objects: int32(len(revision.Spec.Phases[i].Objects))}
		if status := reported[name]; status != nil {
			one.State, one.Available = string(status.State), status.Available
			one.Started, one.Done = when(status.StartedAt), when(status.AvailableAt)
			one.Failing, one.Omitted = status.Failing, status.FailingOmitted
		}
		phases = append(phases, one)
	}
	return phases
}
