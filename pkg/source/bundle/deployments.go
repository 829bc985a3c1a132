package bundle

import (
	"maps"
	"slices"
)

// Annotations with the operator's namespace and its watched namespaces. Operators read them through
// the downward API.
const (
	targetNamespacesAnnotation  = "olm.targetNamespaces"
	operatorNamespaceAnnotation = "olm.operatorNamespace"
)

// deployments adds the Deployments of the ClusterServiceVersion. Except for the changes below, it
// keeps their specs as written.
func (in *installation) deployments() error {
	for i, one := range in.strategy().Deployments {
		path := deploymentPath(i, "spec")
		spec := deepCopy(one.Spec)
		if spec == nil {
			spec = map[string]any{}
		}
		// Old ReplicaSets are not needed, since a rollback is a new revision.
		spec["revisionHistoryLimit"] = int64(1)
		in.annotatePods(spec)
		if in.hasWebhooks(one.Name) {
			in.options.Certificates.mount(pods(spec), certificateName(serviceName(one.Name)))
		}
		metadata := map[string]any{"name": one.Name, "namespace": in.options.InstallNamespace}
		if len(one.Label) > 0 {
			metadata["labels"] = stringMap(one.Label)
		}
		content := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
		override(content, in.config.Deployment)
		if err := in.addContent(content, "spec", path); err != nil {
			return err
		}
	}
	return nil
}

// annotatePods adds to pods the annotations of the ClusterServiceVersion, the watched namespace and
// the operator's namespace. The pods' own annotations take precedence over the annotations of the
// ClusterServiceVersion.
func (in *installation) annotatePods(spec map[string]any) {
	metadata := child(child(spec, "template"), "metadata")
	annotations := stringMap(in.csv.Metadata.Annotations)
	maps.Copy(annotations, child(metadata, "annotations"))
	annotations[targetNamespacesAnnotation] = in.config.WatchNamespace
	annotations[operatorNamespaceAnnotation] = in.options.InstallNamespace
	metadata["annotations"] = annotations
}

func (in *installation) hasWebhooks(deployment string) bool {
	return slices.ContainsFunc(in.csv.Spec.Webhooks, func(one webhook) bool { return one.DeploymentName == deployment })
}
