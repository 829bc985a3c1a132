package probe

import "github.com/penstock-project/penstock/pkg/text"

// Annotations of a PersistentVolumeClaim, set by the volume controller and by the scheduler
// (k8s.io/component-helpers/storage/volume).
const (
	storageProvisioner     = "volume.kubernetes.io/storage-provisioner"
	storageProvisionerBeta = "volume.beta.kubernetes.io/storage-provisioner"
	selectedNode           = "volume.kubernetes.io/selected-node"
	storageClassBeta       = "volume.beta.kubernetes.io/storage-class"
)

// claim is ready when it is bound, or when it waits for its first consumer.
//
// A claim of a class with volumeBindingMode WaitForFirstConsumer (the default class of most
// clusters) stays Pending until a pod that uses it is scheduled. That pod is usually in a later
// stage, which would never be reached. The claim does not show that it waits. But the volume
// controller names the provisioner in an annotation when it starts to work on a claim; for such a
// class, only after the scheduler has named a node (pv_controller.go, syncUnboundClaim, at 1.36).
// So a Pending claim with a class, and without volume, provisioner and node, counts as ready.
//
// The cost: a claim whose class binds at once also passes before the controller's first sync, and
// so does a claim whose class does not exist. The workload that uses the claim then reports that it
// is not available. A revision can assert status.phase=Bound.
func claim(v *view) Verdict {
	class := v.text("spec", "storageClassName")
	if class == "" {
		class = v.text("metadata", "annotations", storageClassBeta)
	}
	volume := v.text("spec", "volumeName")
	provisioner := v.text("metadata", "annotations", storageProvisioner)
	if provisioner == "" {
		provisioner = v.text("metadata", "annotations", storageProvisionerBeta)
	}
	node := v.text("metadata", "annotations", selectedNode)

	switch phase := v.text("status", "phase"); {
	case phase == "Bound":
		return pass()
	case phase == "Lost":
		return failing("lost: its volume %s does not exist any more", text.Clip(clean(volume), maxForeignBytes))
	case phase != "Pending" && phase != "":
		return unknown("its phase %s is not a known one", v.show(phase))
	case volume != "":
		return failing("waiting to be bound to volume %s", quote(volume))
	case provisioner != "":
		return failing("waiting for a volume from provisioner %s", quote(provisioner))
	case node != "":
		return failing("waiting for a volume for node %s", quote(node))
	case class == "":
		return failing("waiting for a persistent volume that fits: it has no storage class, so none is made for it")
	case phase == "":
		return unknown("its status has no phase yet")
	}
	return pass()
}
