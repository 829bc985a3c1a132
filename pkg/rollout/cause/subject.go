package cause

import (
	"cmp"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Subject is an object that is not ready.
type Subject struct {
	ID  manifest.ID
	UID types.UID
	// Live is the known object, with at least the fields that its built-in probe reads. It must not
	// be changed.
	Live *unstructured.Unstructured
	// Manifest is the decoded manifest of the object, for fields that never change, such as
	// selectors. It must not be changed.
	Manifest map[string]any
}

// Explained reports whether this package knows causes for a kind.
func Explained(id manifest.ID) bool {
	switch id.Group {
	case "":
		return id.Kind == "Pod" || id.Kind == "PersistentVolumeClaim"
	case "apps":
		return id.Kind == "Deployment" || id.Kind == "StatefulSet" || id.Kind == "DaemonSet"
	case "batch":
		return id.Kind == "Job"
	case "apiregistration.k8s.io":
		return id.Kind == "APIService"
	}
	return id.IsDefinition()
}

// IsDeployment reports whether the subject is a Deployment, whose Pods have ReplicaSets as owners.
func (s Subject) IsDeployment() bool { return s.ID.Group == "apps" && s.ID.Kind == "Deployment" }

// IsClaim reports whether the subject is a PersistentVolumeClaim.
func (s Subject) IsClaim() bool {
	return s.ID.Group == "" && s.ID.Kind == "PersistentVolumeClaim"
}

// Behind reports whether the controller of a workload has not yet observed its newest generation.
// The Pods are then outdated.
func (s Subject) Behind() bool {
	if s.ID.Group != "apps" || s.Live == nil {
		return false
	}
	seen, _, _ := unstructured.NestedInt64(s.Live.Object, "status", "observedGeneration")
	return seen < s.Live.GetGeneration()
}

// PodSelector returns the selector of a workload's Pods, and whether it has one.
func (s Subject) PodSelector() (labels.Selector, bool) {
	if s.ID.Group == "batch" && s.ID.Kind == "Job" && s.UID != "" {
		if manual, _, _ := unstructured.NestedBool(s.Manifest, "spec", "manualSelector"); !manual {
			return labels.SelectorFromSet(labels.Set{batchv1.ControllerUidLabel: string(s.UID)}), true
		}
	}
	if s.ID.Group != "apps" && s.ID.Group != "batch" {
		return nil, false
	}
	raw, found, err := unstructured.NestedMap(s.Manifest, "spec", "selector")
	if !found || err != nil {
		return nil, false
	}
	var declared metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &declared); err != nil {
		return nil, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&declared)
	// An empty selector would select all Pods of the namespace.
	return selector, err == nil && !selector.Empty()
}

// NewestReplicaSet returns the ReplicaSet of a Deployment's newest template, or nil.
func NewestReplicaSet(deployment types.UID, sets []appsv1.ReplicaSet) *appsv1.ReplicaSet {
	var newest *appsv1.ReplicaSet
	for i := range sets {
		set := &sets[i]
		if !ownedBy(set, deployment) {
			continue
		}
		if newest == nil || cmp.Or(
			revisionOf(set)-revisionOf(newest),
			set.CreationTimestamp.Compare(newest.CreationTimestamp.Time)) > 0 {
			newest = set
		}
	}
	return newest
}

// deploymentRevision is the annotation with the number of a Deployment's template.
const deploymentRevision = "deployment.kubernetes.io/revision"

func revisionOf(set *appsv1.ReplicaSet) int {
	n, err := strconv.Atoi(set.Annotations[deploymentRevision])
	if err != nil {
		return 0
	}
	return n
}

// PodsOf returns the Pods that an owner created from its newest template. The owner is a
// ReplicaSet, or the subject itself.
func (s Subject) PodsOf(owner types.UID, pods []corev1.Pod) []corev1.Pod {
	own := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !ownedBy(&p, owner) })
	switch s.ID.Kind {
	case "StatefulSet":
		update := ""
		if s.Live != nil {
			update, _, _ = unstructured.NestedString(s.Live.Object, "status", "updateRevision")
		}
		return preferring(own, func(p *corev1.Pod) bool { return p.Labels[appsv1.ControllerRevisionHashLabelKey] == update })
	case "DaemonSet":
		newest := 0
		for i := range own {
			newest = max(newest, templateGeneration(&own[i]))
		}
		return preferring(own, func(p *corev1.Pod) bool { return templateGeneration(p) == newest })
	}
	return own
}

// preferring returns the Pods that satisfy is, or all Pods if none does. If only Pods of an older
// template exist, they are the cause, because one of them is not ready and blocks their
// replacement.
func preferring(pods []corev1.Pod, is func(*corev1.Pod) bool) []corev1.Pod {
	kept := slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !is(&p) })
	if _, wrong := OfPods(kept); !wrong {
		return pods
	}
	return kept
}

func templateGeneration(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Labels["pod-template-generation"])
	if err != nil {
		return 0
	}
	return n
}

func ownedBy(object metav1.Object, owner types.UID) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == owner
}
