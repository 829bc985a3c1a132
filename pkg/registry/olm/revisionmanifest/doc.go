// Package revisionmanifest serves one manifest of a revision as a virtual resource. The subresource
// manifests selects a manifest by query parameters, which kubectl cannot send. This resource has
// the selection in the name:
//
//	kubectl get revisionmanifest argocd-2:Deployment.apps:argocd:server -o yaml
package revisionmanifest
