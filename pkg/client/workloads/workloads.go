// Package workloads finds the Pods of workloads, and the state of each. It uses the caller's
// rights.
package workloads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/client"
)

// Owner is an object that has Pods.
type Owner struct{ Kind, Namespace, Name string }

// HavePods reports whether objects of a kind have Pods.
func HavePods(kind string) bool {
	return slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet"}, kind)
}

// Pods holds the Pods of a namespace by workload. It maps a Deployment to its Pods through
// ReplicaSets.
type Pods struct {
	Of map[Owner][]corev1.Pod
	// Between maps the owners of Pods that have an owner themselves, such as ReplicaSets, to that
	// owner.
	Between map[Owner]Owner
	// More is true if the namespace has more Pods than were read.
	More bool
}

// Most bounds the Pods that are read from a namespace.
const Most = 1000

// List reads the Pods of a namespace.
func List(ctx context.Context, api rest.Interface, namespace string) (Pods, error) {
	var pods corev1.PodList
	var sets metav1.PartialObjectMetadataList
	if err := Get(ctx, api.Get().AbsPath("/api/v1/namespaces", namespace, "pods").Param("limit", strconv.Itoa(Most)), "application/json", &pods); err != nil {
		return Pods{}, fmt.Errorf("listing the Pods of %s: %w", namespace, err)
	}
	if err := Get(ctx, api.Get().AbsPath("/apis/apps/v1/namespaces", namespace, "replicasets"), "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", &sets); err != nil {
		return Pods{}, fmt.Errorf("listing the ReplicaSets of %s: %w", namespace, err)
	}
	found := byOwner(pods.Items, sets.Items)
	found.More = pods.Continue != ""
	return found, nil
}

// Get reads resources that have no typed client.
func Get(ctx context.Context, request *rest.Request, accept string, into any) error {
	raw, err := client.Raw(request.SetHeader("Accept", accept).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func byOwner(pods []corev1.Pod, replicaSets []metav1.PartialObjectMetadata) Pods {
	found := Pods{Of: map[Owner][]corev1.Pod{}, Between: map[Owner]Owner{}}
	for i := range replicaSets {
		set := &replicaSets[i]
		if controller := metav1.GetControllerOf(set); controller != nil {
			found.Between[Owner{"ReplicaSet", set.Namespace, set.Name}] = Owner{controller.Kind, set.Namespace, controller.Name}
		}
	}
	for _, pod := range pods {
		controller := metav1.GetControllerOf(&pod)
		if controller == nil {
			continue
		}
		owner := Owner{controller.Kind, pod.Namespace, controller.Name}
		if above, known := found.Between[owner]; known {
			owner = above
		}
		found.Of[owner] = append(found.Of[owner], pod)
	}
	return found
}

// State is the state of a Pod.
type State struct {
	// Word is the phase of the Pod, the reason why a container waits, or Terminating.
	Word              string
	Ready, Containers int
	Restarts          int32
	// Good is true if the Pod has reached its state. Stuck is true if a container fails, or cannot
	// start.
	Good, Stuck bool
}

// StateOf returns the state of a Pod.
func StateOf(pod *corev1.Pod) State {
	state := State{Word: string(pod.Status.Phase), Containers: len(pod.Spec.Containers)}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		if status.Ready {
			state.Ready++
		}
		state.Restarts += status.RestartCount
		if status.State.Waiting != nil && status.State.Waiting.Reason != "" {
			state.Word = status.State.Waiting.Reason
			state.Stuck = state.Stuck || state.Word != "ContainerCreating" && state.Word != "PodInitializing"
		}
	}
	if pod.DeletionTimestamp != nil {
		state.Word = "Terminating"
	}
	state.Stuck = state.Stuck || pod.Status.Phase == corev1.PodFailed
	state.Good = state.Ready == state.Containers || pod.Status.Phase == corev1.PodSucceeded
	return state
}
