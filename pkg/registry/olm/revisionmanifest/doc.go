// Package revisionmanifest serves one manifest of a revision as a virtual
// resource. The subresource manifests picks one by query parameters, which
// kubectl cannot send; this one says it in the name:
//
//	kubectl get revisionmanifest argocd-2:Deployment.apps:argocd:server -o yaml
package revisionmanifest
