package screens

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/advice"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/client/workloads"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

// Pods holds the Pods of a revision's workloads that the caller may list.
type Pods struct {
	Asked string `json:"asked"`
	// Target is the other cluster that contains the objects; the caller has no credentials there.
	Target    string     `json:"target,omitempty"`
	Workloads []Workload `json:"workloads"`
	// Refused lists the namespaces whose Pods are not shown, with reasons.
	Refused []string `json:"refused,omitempty"`
}

// Workload is an object with its Pods.
type Workload struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Pods      []Pod  `json:"pods"`
}

// Pod is the state of a Pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Signal    Signal `json:"signal"`
	// State is the Pod's phase, or the reason why a container waits.
	State string `json:"state"`
	// Said is a text with the numbers of ready containers and of restarts.
	Said    string `json:"said"`
	Created string `json:"created"`
	Node    string `json:"node,omitempty"`
	// ReplicaSet is the ReplicaSet between its Deployment and the Pod.
	ReplicaSet string `json:"replicaSet,omitempty"`
	// Containers are in the order of the Pod, init containers first.
	Containers []Container `json:"containers"`
}

// Container is one container of a Pod.
type Container struct {
	Name string `json:"name"`
	// Init is true for an init container.
	Init  bool `json:"init,omitempty"`
	Ready bool `json:"ready"`
	// State is Running, Waiting or Terminated, and Reason is its reason.
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Ended is the failure of the container's last run, empty without one.
	Ended    string `json:"ended,omitempty"`
	Restarts int32  `json:"restarts"`
}

// Event is an event of the cluster about an object.
type Event struct {
	Time string `json:"time"`
	// Type is Normal or Warning.
	Type      string `json:"type"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Count is the number of occurrences of the event.
	Count int32 `json:"count"`
	// From is the component that reported the event.
	From string `json:"from,omitempty"`
}

// Events holds the newest events about an extension, its revisions, its objects and their Pods.
type Events struct {
	Asked  string  `json:"asked"`
	Events []Event `json:"events"`
	// Refused lists the namespaces whose events are not shown, with reasons.
	Refused []string `json:"refused,omitempty"`
}

// PodDetail is one Pod with its events.
type PodDetail struct {
	Asked string `json:"asked"`
	Pod   Pod    `json:"pod"`
	// Events are the newest events about the Pod. NotShown is the reason why none are shown.
	Events   []Event `json:"events"`
	NotShown string  `json:"notShown,omitempty"`
}

const (
	maxEvents   = 200
	eventsRead  = 5000
	mostMessage = 1024
)

func (a *API) core() rest.Interface { return a.penstock.Discovery().RESTClient() }

func (a *API) pods(ctx context.Context, r *http.Request) (any, error) {
	out := Pods{Asked: time.Now().UTC().Format(time.RFC3339), Workloads: []Workload{}}
	revision, err := a.penstock.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, r.PathValue("name"), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if revision.Spec.TargetRef != nil {
		out.Target = revision.Spec.TargetRef.Name
		return out, nil
	}
	reader := &podReader{api: a.core(), known: map[string]workloads.Pods{}}
	for _, ref := range objectsOf(revision) {
		if !workloads.HavePods(ref.Kind) {
			continue
		}
		found, err := reader.in(ctx, ref.Namespace)
		if err != nil {
			return nil, err
		}
		one := Workload{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Pods: []Pod{}}
		for _, pod := range found.Of[ref] {
			one.Pods = append(one.Pods, podOf(&pod))
		}
		out.Workloads = append(out.Workloads, one)
	}
	out.Refused = reader.refused
	return out, nil
}

func objectsOf(revision *v1alpha1.ClusterExtensionRevision) []workloads.Owner {
	var objects []workloads.Owner
	for _, phase := range revision.Spec.Phases {
		for _, object := range phase.Objects {
			objects = append(objects, workloads.Owner{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name})
		}
	}
	return objects
}

// podReader reads the Pods of each namespace once. It omits namespaces where the user has no right
// to list Pods.
type podReader struct {
	api     rest.Interface
	known   map[string]workloads.Pods
	refused []string
}

func (p *podReader) in(ctx context.Context, namespace string) (workloads.Pods, error) {
	if found, known := p.known[namespace]; known {
		return found, nil
	}
	found, err := workloads.List(ctx, p.api, namespace)
	if apierrors.IsForbidden(err) {
		p.refused, err = append(p.refused, err.Error()), nil
	}
	if err != nil {
		return workloads.Pods{}, err
	}
	if found.More {
		p.refused = append(p.refused, fmt.Sprintf("namespace %s has more than %d Pods", namespace, workloads.Most))
	}
	p.known[namespace] = found
	return found, nil
}

func podOf(pod *corev1.Pod) Pod {
	state := workloads.StateOf(pod)
	out := Pod{
		Namespace: pod.Namespace, Name: pod.Name, State: state.Word, Said: fmt.Sprintf("%d of %s ready", state.Ready, text.Count(state.Containers, "container")),
		Created: when(&pod.CreationTimestamp), Node: pod.Spec.NodeName, Signal: advice.InProgress, Containers: []Container{},
	}
	if controller := metav1.GetControllerOf(pod); controller != nil && controller.Kind == "ReplicaSet" {
		out.ReplicaSet = controller.Name
	}
	if state.Restarts > 0 {
		out.Said += ", " + text.Count(state.Restarts, "restart")
	}
	switch {
	case state.Good:
		out.Signal = advice.Healthy
	case state.Stuck:
		out.Signal = advice.NeedsAttention
	}
	out.Containers = append(containersOf(pod.Spec.InitContainers, pod.Status.InitContainerStatuses, true), containersOf(pod.Spec.Containers, pod.Status.ContainerStatuses, false)...)
	return out
}

func containersOf(containers []corev1.Container, statuses []corev1.ContainerStatus, first bool) []Container {
	out := make([]Container, 0, len(containers))
	for i := range containers {
		one := Container{Name: containers[i].Name, Init: first, State: "Waiting"}
		at := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == one.Name })
		if at >= 0 {
			status := &statuses[at]
			one.Ready, one.Restarts = status.Ready, status.RestartCount
			if ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated); ended != nil && ended.ExitCode != 0 {
				one.Ended = fmt.Sprintf("exit code %d", ended.ExitCode)
			}
			switch {
			case status.State.Running != nil:
				one.State = "Running"
			case status.State.Terminated != nil:
				one.State, one.Reason, one.Message = "Terminated", status.State.Terminated.Reason, text.Line(status.State.Terminated.Message, mostMessage)
			case status.State.Waiting != nil:
				one.Reason, one.Message = status.State.Waiting.Reason, text.Line(status.State.Waiting.Message, mostMessage)
			}
		}
		out = append(out, one)
	}
	return out
}

func (a *API) pod(ctx context.Context, r *http.Request) (any, error) {
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	if refusal := checkName(namespace); refusal != nil {
		return nil, refusal
	}
	var pod corev1.Pod
	if err := workloads.Get(ctx, a.core().Get().AbsPath("/api/v1/namespaces", namespace, "pods", name), "application/json", &pod); err != nil {
		return nil, err
	}
	out := PodDetail{Asked: time.Now().UTC().Format(time.RFC3339), Pod: podOf(&pod)}
	found, _, err := a.eventsIn(ctx, namespace, "involvedObject.uid="+string(pod.UID), func(*corev1.ObjectReference) bool { return true })
	if apierrors.IsForbidden(err) {
		out.NotShown, err = err.Error(), nil
	}
	out.Events = newest(found)
	return out, err
}

func (a *API) events(ctx context.Context, r *http.Request) (any, error) {
	name := r.PathValue("name")
	listed, err := a.penstock.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.ChainLabel + "=" + name})
	if err != nil {
		return nil, err
	}
	out := Events{Asked: time.Now().UTC().Format(time.RFC3339)}
	wanted := map[workloads.Owner]bool{{Kind: extension.Kind.Kind, Name: name}: true}
	namespaces := map[string]bool{}
	for i := range listed.Items {
		revision := &listed.Items[i]
		wanted[workloads.Owner{Kind: "ClusterExtensionRevision", Name: revision.Name}] = true
		if overview.State(revision) == string(v1alpha1.LifecycleStateArchived) || revision.Spec.TargetRef != nil {
			continue
		}
		for _, object := range objectsOf(revision) {
			wanted[object] = true
			namespaces[object.Namespace] = namespaces[object.Namespace] || workloads.HavePods(object.Kind)
		}
	}
	// Events about objects without a namespace are in metav1.NamespaceDefault.
	delete(namespaces, "")
	if _, known := namespaces[metav1.NamespaceDefault]; !known {
		namespaces[metav1.NamespaceDefault] = false
	}
	reader := &podReader{api: a.core(), known: map[string]workloads.Pods{}}
	var all []Event
	for namespace, havePods := range namespaces {
		if havePods {
			found, err := reader.in(ctx, namespace)
			if err != nil {
				return nil, err
			}
			for set, above := range found.Between {
				wanted[set] = wanted[above]
			}
			for owner, pods := range found.Of {
				for i := range pods {
					wanted[workloads.Owner{Kind: "Pod", Namespace: pods[i].Namespace, Name: pods[i].Name}] = wanted[owner]
				}
			}
		}
		found, more, err := a.eventsIn(ctx, namespace, "", func(of *corev1.ObjectReference) bool {
			return wanted[workloads.Owner{Kind: of.Kind, Namespace: of.Namespace, Name: of.Name}]
		})
		if more {
			out.Refused = append(out.Refused, fmt.Sprintf("namespace %s has more than %d events", namespace, eventsRead))
		}
		if apierrors.IsForbidden(err) {
			out.Refused, err = append(out.Refused, err.Error()), nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	out.Events, out.Refused = newest(all), append(out.Refused, reader.refused...)
	slices.Sort(out.Refused)
	return out, nil
}

// eventsIn returns the events of a namespace that match a field selector and are about the wanted
// objects. It also reports whether there are more events than it reads.
func (a *API) eventsIn(ctx context.Context, namespace, fields string, about func(*corev1.ObjectReference) bool) (found []Event, more bool, err error) {
	var list corev1.EventList
	request := a.core().Get().AbsPath("/api/v1/namespaces", namespace, "events").Param("limit", fmt.Sprint(eventsRead)).Param("fieldSelector", fields)
	if err := workloads.Get(ctx, request, "application/json", &list); err != nil {
		return nil, false, fmt.Errorf("listing the events of %s: %w", namespace, err)
	}
	for i := range list.Items {
		if event := &list.Items[i]; about(&event.InvolvedObject) {
			found = append(found, eventOf(event))
		}
	}
	return found, list.Continue != "", nil
}

func eventOf(event *corev1.Event) Event {
	of := &event.InvolvedObject
	out := Event{
		Type: event.Type, Reason: event.Reason, Message: text.Line(event.Message, mostMessage), Kind: of.Kind, Namespace: of.Namespace, Name: of.Name,
		Count: max(1, event.Count), From: cmp.Or(event.ReportingController, event.Source.Component),
	}
	at := event.LastTimestamp
	if at.IsZero() {
		at = metav1.NewTime(event.EventTime.Time)
	}
	if event.Series != nil {
		out.Count, at = event.Series.Count, metav1.NewTime(event.Series.LastObservedTime.Time)
	}
	out.Time = when(&at)
	return out
}

// newest sorts events, newest first, and keeps at most maxEvents.
func newest(events []Event) []Event {
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(b.Time, a.Time) })
	return append([]Event{}, events[:min(maxEvents, len(events))]...)
}
