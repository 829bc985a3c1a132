package v1alpha1

// AdoptedFromAnnotation of a revision of an extension that was adopted from OLM names the object
// of OLM with the same content, as <kind>/<name>: ClusterObjectSet/argocd-3,
// ClusterExtensionRevision/argocd-3, HelmRelease/olmv1-system/argocd:3 or
// Subscription/operators/argocd.
const AdoptedFromAnnotation = "penstock.dev/adopted-from"
