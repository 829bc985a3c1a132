package chain

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/helmrelease"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
)

// helm is the Helm release from which the chain was adopted. Helm stores the Secret of a new
// revision before it writes the first object. So a caller that checks before its own write cannot
// miss it.
type helm struct {
	release helmrelease.Release
	// revision is the name of the Penstock revision that records the adoption.
	revision string
	releases rollout.Lister
}

var _ rollout.CompetingOwner = helm{}

// competingOwner returns the Helm release from which the chain was adopted, or nil.
func (s *scope) competingOwner() rollout.CompetingOwner {
	found := helm{releases: s.cluster.Engine.Lister}
	for i := range s.revisions {
		value, adopted := s.revisions[i].Annotations[olmv1alpha1.HelmReleaseAnnotation]
		if !adopted {
			continue
		}
		// Admission accepts only valid values. An invalid value names no release.
		release, err := helmrelease.Parse(value)
		if err == nil && release.Revision > found.release.Revision {
			found.release, found.revision = release, s.revisions[i].Name
		}
	}
	if found.revision == "" || found.releases == nil {
		return nil
	}
	return found
}

// Claims lists the Secrets of the release, without their data.
func (h helm) Claims(ctx context.Context) (string, error) {
	secrets, err := h.releases.Secrets(ctx, h.release.Namespace, "owner in (helm,"+chunked.Owner+"),name="+h.release.Name)
	if err != nil {
		return "", fmt.Errorf("looking for newer revisions of the Helm release %s/%s: %w", h.release.Namespace, h.release.Name, err)
	}
	newest, status, owner := 0, "", ""
	for i := range secrets {
		if number := helmRevision(&secrets[i]); number > newest {
			newest, status, owner = number, secrets[i].Labels["status"], secrets[i].Labels[chunked.LabelOwner]
		}
	}
	name := h.release.Namespace + "/" + h.release.Name
	next := h.release
	next.Revision = newest
	switch {
	case newest > h.release.Revision && owner == chunked.Owner:
		return fmt.Sprintf("OLM's operator-controller has revision %d of release %s (%s), and %d was adopted: nothing is written until a person decides. "+
			"Scale operator-controller to zero; then leave everything to it (kubectl penstock adopt olmv1 %s --undo), or keep what Penstock has (kubectl annotate --overwrite cer %s %s=%s)",
			newest, name, status, h.release.Revision, h.release.Name, h.revision, olmv1alpha1.HelmReleaseAnnotation, next), nil
	case newest > h.release.Revision:
		return fmt.Sprintf("Helm has revision %d of release %s (%s), and %d was adopted: nothing is written until a person decides. "+
			"Adopt the newer one (kubectl penstock adopt helm %s -n %s%s), leave everything to Helm (the same with --undo), or keep what Penstock has (kubectl annotate --overwrite cer %s %s=%s)",
			newest, name, status, h.release.Revision, h.release.Name, h.release.Namespace, h.extensionFlag(), h.revision, olmv1alpha1.HelmReleaseAnnotation, next), nil
	case status == "uninstalling" || status == "uninstalled":
		return fmt.Sprintf("Helm has uninstalled release %s: nothing is written until a person decides. "+
			"Delete the revisions of the extension, or keep the extension: kubectl delete secret -n %s -l owner=helm,name=%s", name, h.release.Namespace, h.release.Name), nil
	}
	return "", nil
}

// extensionFlag returns the flag that names the extension in the command, if its name differs from
// the release.
func (h helm) extensionFlag() string {
	if extension, _, _ := olm.ChainOf(h.revision); extension != h.release.Name {
		return " --extension " + extension
	}
	return ""
}

// helmRevision returns the revision number of a Helm release Secret, or 0.
func helmRevision(secret metav1.Object) int {
	number, err := strconv.Atoi(secret.GetLabels()["version"])
	if err != nil {
		return 0
	}
	return number
}
