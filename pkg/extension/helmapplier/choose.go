package helmapplier

import (
	"fmt"
	"slices"

	releasecommon "helm.sh/helm/v4/pkg/release/common"
)

// Deployed is the status of a revision whose objects are in the cluster.
const Deployed = string(releasecommon.StatusDeployed)

// Blocked is the error for a release that cannot be taken over.
type Blocked struct {
	// Message describes the problem, and Help the remedy; Help may be empty.
	Message, Help string
}

// Choose returns the revision of a release to take over. It returns nil if there is no release or
// it was taken over already. All are the release's revisions, newest first.
//
//  1. A release that is being uninstalled is not taken over.
//  2. The newest deployed revision is chosen. The engine then restores objects that a later failed
//     or interrupted revision changed.
//  3. Without a deployed revision, the newest readable one is chosen: at least some of its objects
//     may be in the cluster. The wanted content is rolled out after it.
//
// If the revision to choose is unreadable, Choose returns a Blocked error.
func Choose(all []Revision) (*Revision, *Blocked) {
	// A revision writes no object before its last Secret exists.
	all = slices.DeleteFunc(slices.Clone(all), func(one Revision) bool {
		return one.TakenOver || one.Err != nil && releasecommon.Status(one.Status).IsPending()
	})
	if len(all) == 0 {
		return nil, nil
	}
	switch status := releasecommon.Status(all[0].Status); status {
	case releasecommon.StatusUninstalling, releasecommon.StatusUninstalled:
		return nil, &Blocked{
			Message: fmt.Sprintf("revision %d of its Helm release is %s: a release that is being deleted is not taken over", all[0].Version, status),
			Help:    "wait until the Secrets of the release are deleted, or delete them",
		}
	}
	chosen := &all[0]
	for i := range all {
		if all[i].Status == Deployed {
			chosen = &all[i]
			break
		}
	}
	if chosen.Err != nil {
		return nil, &Blocked{
			Message: fmt.Sprintf("revision %d of its Helm release (%s) cannot be read: %s", chosen.Version, chosen.Status, chosen.Err),
			Help:    "restore its Secrets from a backup",
		}
	}
	return chosen, nil
}
