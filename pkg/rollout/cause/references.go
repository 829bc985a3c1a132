package cause

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// reference is a ConfigMap or Secret that a Pod's spec names.
type reference struct{ kind, name, key string }

// misconfigured returns the cause of a container whose configuration is incomplete. Of the
// kubelet's text, it uses only names that the spec has.
func misconfigured(pod *corev1.Pod, spec *corev1.Container, c Cause, written string) Cause {
	c = c.because(written)
	if found, ok := lacking(environment(spec), pod.Namespace, written); ok {
		c.Related, c.Facts = &found.id, found.facts
	} else if strings.Contains(written, "runAsNonRoot") {
		c.Facts = "runAsNonRoot is set, and the image runs as root or as a user without a number"
	}
	return c
}

type lack struct {
	id    manifest.ID
	facts string
}

// lacking returns the reference that a text reports as missing, in the kubelet's forms
// (pkg/kubelet/kubelet_pods.go, pkg/volume/{configmap,secret,projected}).
func lacking(references []reference, namespace, written string) (lack, bool) {
	for _, r := range references {
		id := manifest.ID{Kind: r.kind, Namespace: namespace, Name: r.name}
		lower := strings.ToLower(r.kind)
		if strings.Contains(written, lower+` "`+r.name+`" not found`) {
			return lack{id, "does not exist"}, true
		}
		if r.key != "" && strings.Contains(written, "couldn't find key "+r.key+" in "+r.kind+" "+namespace+"/"+r.name) {
			return lack{id, "has no key " + word(r.key)}, true
		}
	}
	if strings.Contains(written, "references non-existent") {
		for _, r := range references {
			if r.key != "" && strings.Contains(written, r.key) {
				return lack{manifest.ID{Kind: r.kind, Namespace: namespace, Name: r.name}, "has no key " + word(r.key)}, true
			}
		}
	}
	return lack{}, false
}

func environment(spec *corev1.Container) []reference {
	var found []reference
	for _, from := range spec.EnvFrom {
		if from.ConfigMapRef != nil {
			found = append(found, reference{"ConfigMap", from.ConfigMapRef.Name, ""})
		}
		if from.SecretRef != nil {
			found = append(found, reference{"Secret", from.SecretRef.Name, ""})
		}
	}
	for _, variable := range spec.Env {
		if from := variable.ValueFrom; from != nil && from.ConfigMapKeyRef != nil {
			found = append(found, reference{"ConfigMap", from.ConfigMapKeyRef.Name, from.ConfigMapKeyRef.Key})
		} else if from != nil && from.SecretKeyRef != nil {
			found = append(found, reference{"Secret", from.SecretKeyRef.Name, from.SecretKeyRef.Key})
		}
	}
	return found
}

// mounted returns the sources of a Pod's volumes, with their keys.
func mounted(pod *corev1.Pod) []reference {
	var found []reference
	keys := func(kind, name string, items []corev1.KeyToPath) {
		found = append(found, reference{kind, name, ""})
		for _, item := range items {
			found = append(found, reference{kind, name, item.Key})
		}
	}
	for _, volume := range pod.Spec.Volumes {
		if from := volume.ConfigMap; from != nil {
			keys("ConfigMap", from.Name, from.Items)
		}
		if from := volume.Secret; from != nil {
			keys("Secret", from.SecretName, from.Items)
		}
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if from := source.ConfigMap; from != nil {
				keys("ConfigMap", from.Name, from.Items)
			}
			if from := source.Secret; from != nil {
				keys("Secret", from.Name, from.Items)
			}
		}
	}
	return found
}

// ClaimsOf returns the names of a Pod's PersistentVolumeClaims, including claims of ephemeral
// volumes, sorted.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim != nil {
			names = append(names, volume.PersistentVolumeClaim.ClaimName)
		}
		if volume.Ephemeral != nil {
			names = append(names, pod.Name+"-"+volume.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
