package cause

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// OfSelf returns the cause in the object's own status, if it has one.
func (s Subject) OfSelf() (Cause, bool) {
	if s.Live == nil {
		return Cause{}, false
	}
	base := Cause{Object: s.ID}
	switch {
	case s.IsDeployment():
		if c, found := s.condition("ReplicaFailure", "True"); found {
			base.Reason = reasonOr(c.reason, "FailedCreate")
			return refused(base, s.ID.Namespace, c.message), true
		}
	case s.ID.Group == "" && s.ID.Kind == "Pod":
		if pod := s.Pod(); pod != nil {
			return OfPods([]corev1.Pod{*pod})
		}
	case s.IsClaim():
		return s.ofClaim(base)
	case s.ID.Kind == "APIService":
		return s.ofAPIService(base)
	case s.ID.IsDefinition():
		return s.ofDefinition(base)
	case s.ID.Kind == "Job":
		for _, kind := range []string{"Failed", "FailureTarget"} {
			if c, found := s.condition(kind, "True"); found {
				base.Reason = reasonOr(c.reason, "Failed")
				return base.because(c.message), true
			}
		}
	}
	return Cause{}, false
}

// Pod returns the subject if it is a Pod, and nil otherwise. Only the status of a Pod is watched;
// its spec is from the manifest.
func (s Subject) Pod() *corev1.Pod {
	if s.Live == nil || s.ID.Group != "" || s.ID.Kind != "Pod" {
		return nil
	}
	var live, declared corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Live.Object, &live); err != nil {
		return nil
	}
	if len(live.Spec.Containers) > 0 {
		return &live
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Manifest, &declared); err == nil {
		live.Spec = declared.Spec
	}
	return &live
}

func (s Subject) ofClaim(base Cause) (Cause, bool) {
	var claim corev1.PersistentVolumeClaim
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(s.Live.Object, &claim); err != nil {
		return Cause{}, false
	}
	return OfClaim(&claim, base)
}

// OfClaim returns the reason why a claim has no volume, from its own status. base is the cause to
// extend.
func OfClaim(claim *corev1.PersistentVolumeClaim, base Cause) (Cause, bool) {
	if claim.Status.Phase == corev1.ClaimBound {
		return Cause{}, false
	}
	id := claimID(claim.Namespace, claim.Name)
	if base.Object != id {
		base.Related = &id
	}
	if base.Reason == "" {
		base.Reason = ClaimNotBound
	}
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		base.Facts = "has lost its volume"
	case claim.Spec.VolumeName != "":
		base.Facts = "is not bound to volume " + word(claim.Spec.VolumeName) + ", which it names"
	case class == "":
		base.Facts = "is not bound: it has no storage class, so that no volume is made for it"
	default:
		base.Facts = "is not bound: storage class " + word(class) + " has no volume for it"
	}
	return base, true
}

// ofAPIService finds the cause of an APIService whose server is missing or does not answer.
func (s Subject) ofAPIService(base Cause) (Cause, bool) {
	c, found := s.condition("Available", "False")
	if !found {
		return Cause{}, false
	}
	base.Reason = reasonOr(c.reason, "Unavailable")
	name, _, _ := unstructured.NestedString(s.Manifest, "spec", "service", "name")
	namespace, _, _ := unstructured.NestedString(s.Manifest, "spec", "service", "namespace")
	if name != "" {
		base.Related = &manifest.ID{Kind: "Service", Namespace: namespace, Name: name}
	}
	switch c.reason {
	case "ServiceNotFound":
		base.Facts = "does not exist"
	case "EndpointsNotFound", "MissingEndpoints":
		base.Facts = "has no ready Pod behind it"
	case "ServiceAccessError", "ServicePortError":
		base.Facts = "does not have the port"
	case "FailedDiscoveryCheck":
		base.Facts = "does not answer as an API server does"
	}
	return base.because(c.message), true
}

// ofDefinition finds the cause of a definition whose names are taken.
func (s Subject) ofDefinition(base Cause) (Cause, bool) {
	c, found := s.condition("NamesAccepted", "False")
	if !found {
		return Cause{}, false
	}
	base.Reason = reasonOr(c.reason, "NotAccepted")
	field := map[string]string{
		"PluralConflict": "plural", "SingularConflict": "singular", "KindConflict": "kind",
		"ListKindConflict": "listKind", "ShortNamesConflict": "shortNames",
	}[c.reason]
	if field != "" {
		group, _, _ := unstructured.NestedString(s.Manifest, "spec", "group")
		base.Facts = "another definition of group " + word(group) + " already uses its spec.names." + field
		if name, _, _ := unstructured.NestedString(s.Manifest, "spec", "names", field); name != "" {
			base.Facts += ", " + word(name)
		}
	}
	return base.because(c.message), true
}

type said struct{ reason, message string }

// condition returns the condition of a type if it has the status.
func (s Subject) condition(kind, status string) (said, bool) {
	list, _, _ := unstructured.NestedFieldNoCopy(s.Live.Object, "status", "conditions")
	conditions, _ := list.([]any)
	for _, element := range conditions {
		c, _ := element.(map[string]any)
		if c["type"] == kind && c["status"] == status {
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			return said{reason, message}, true
		}
	}
	return said{}, false
}

// refused completes the cause of a Pod that the API server did not let a controller create. It
// knows the forms of admission plugins (k8s.io/apiserver and kubernetes/plugin/pkg/admission).
func refused(c Cause, namespace, written string) Cause {
	c = c.because(written)
	missing := func(group, kind, namespace, name, facts string) {
		c.Related, c.Facts = &manifest.ID{Group: group, Kind: kind, Namespace: namespace, Name: name}, facts
	}
	// The first three forms quote third parties. They are matched first, so that the quoted text is
	// not parsed.
	if name, found := between(written, `admission webhook "`, `"`, " denied the request"); found {
		c.Facts = "webhook " + name + " denied the Pod"
	} else if name, found := between(written, `failed calling webhook "`, `"`, ""); found {
		c.Facts = "webhook " + name + " could not be called"
	} else if name, found := between(written, "ValidatingAdmissionPolicy '", "'", " denied request"); found {
		missing("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "", name, "denied the Pod")
	} else if name, found := between(written, "exceeded quota: ", ",", ""); found {
		missing("", "ResourceQuota", namespace, name, "is used up")
	} else if name, found := between(written, "failed quota: ", ":", ""); found {
		missing("", "ResourceQuota", namespace, name, "wants requests or limits that its containers do not have")
	} else if name, found := between(written, `serviceaccount "`, `"`, "not found"); found {
		missing("", "ServiceAccount", namespace, name, "does not exist")
	} else if name, found := between(written, "no PriorityClass with name ", " was found", ""); found {
		missing("scheduling.k8s.io", "PriorityClass", "", name, "does not exist")
	} else if strings.Contains(written, "violates PodSecurity") {
		missing("", "Namespace", "", namespace, "does not admit such Pods (Pod Security)")
	}
	return c
}

// between returns the name between two marks in a text, if it has the form of a name, and if the
// text follows occurs after it.
func between(written, before, behind, follows string) (string, bool) {
	_, rest, found := strings.Cut(written, before)
	if !found {
		return "", false
	}
	name, rest, found := strings.Cut(rest, behind)
	if !found || !isName(name) || !strings.Contains(rest, follows) {
		return "", false
	}
	return name, true
}

func isName(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}
