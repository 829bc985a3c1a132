package chain

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
)

// helm is the Helm release that the chain was adopted from. Helm stores the Secret of a new
// revision before it writes the first object, so whoever asks before a write of their own
// cannot miss it.
type helm struct {
	release helmrelease.Release
	// revision of ours that says so.
	revision string
	releases rollout.Lister
}

var _ rollout.Rival = helm{}

// rival is Helm, for a chain that was adopted from it, and nil for all others.
func (v *visit) rival() rollout.Rival {
	found := helm{releases: v.cluster.Engine.Lister}
	for i := range v.revisions {
		value, adopted := v.revisions[i].Annotations[olmv1alpha1.HelmReleaseAnnotation]
		if !adopted {
			continue
		}
		// Admission takes no other values; and one that cannot be read names no release.
		release, err := helmrelease.Parse(value)
		if err == nil && release.Revision > found.release.Revision {
			found.release, found.revision = release, v.revisions[i].Name
		}
	}
	if found.revision == "" || found.releases == nil {
		return nil
	}
	return found
}

// Claims lists the Secrets of the release, without their data.
func (h helm) Claims(ctx context.Context) (string, error) {
	secrets, err := h.releases.Secrets(ctx, h.release.Namespace, "owner=helm,name="+h.release.Name)
	if err != nil {
		return "", fmt.Errorf("looking for newer revisions of the Helm release %s/%s: %w", h.release.Namespace, h.release.Name, err)
	}
	newest, status := 0, ""
	for i := range secrets {
		if number := helmRevision(&secrets[i]); number > newest {
			newest, status = number, secrets[i].Labels["status"]
		}
	}
	name := h.release.Namespace + "/" + h.release.Name
	switch {
	case newest > h.release.Revision:
		next := h.release
		next.Revision = newest
		return fmt.Sprintf("Helm has revision %d of release %s (%s), and %d was adopted: nothing is written until somebody decides. "+
			"Take it: penstock adopt-helm %s -n %s; leave all to Helm: the same with --undo; keep what is here: kubectl annotate --overwrite cer %s %s=%s",
			newest, name, status, h.release.Revision, h.release.Name, h.release.Namespace, h.revision, olmv1alpha1.HelmReleaseAnnotation, next), nil
	case status == "uninstalling" || status == "uninstalled":
		return fmt.Sprintf("Helm has uninstalled release %s: nothing is written until somebody decides. "+
			"Delete the revisions of the extension, or keep it: kubectl delete secret -n %s -l owner=helm,name=%s", name, h.release.Namespace, h.release.Name), nil
	}
	return "", nil
}

// helmRevision is the number of a revision of Helm's, 0 for none.
func helmRevision(secret metav1.Object) int {
	number, err := strconv.Atoi(secret.GetLabels()["version"])
	if err != nil {
		return 0
	}
	return number
}
