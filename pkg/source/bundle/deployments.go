package bundle

import (
	"maps"
	"slices"
)

// Annotations that tell an operator where it runs and what it watches. Operators read them
// through the downward API.
const (
	targetNamespacesAnnotation  = "olm.targetNamespaces"
	operatorNamespaceAnnotation = "olm.operatorNamespace"
)

// deployments makes those of the ClusterServiceVersion. Their specs stay as they were
// written, but for what is said here.
func (in *installation) deployments() error {
	for i, one := range in.strategy().Deployments {
		path := deploymentPath(i, "spec")
		spec := deepCopy(one.Spec)
		if spec == nil {
			spec = map[string]any{}
		}
		// Old ReplicaSets are of no use: a rollback is a revision of its own.
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

// annotatePods gives pods the annotations of the ClusterServiceVersion, which their own
// override, and says where they run.
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
