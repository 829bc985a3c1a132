package helmapplier

import (
	"fmt"
	"slices"

	releasecommon "helm.sh/helm/v4/pkg/release/common"
)

// Deployed is the status of a revision whose objects are in the cluster.
const Deployed = string(releasecommon.StatusDeployed)

// Blocked is the error for a release that cannot be adopted.
type Blocked struct {
	// Message says what was found, and Help what a person can do; Help may be empty.
	Message, Help string
}

// Choose finds the revision of a release that is taken over, nil when there is no release, or
// when it was taken over already. All are its revisions, newest first.
//
//  1. A release that is being removed is left to that.
//  2. The newest deployed revision, whatever came after it: what a failed or interrupted one
//     has changed is brought back.
//  3. Without one, the newest that can be read: its objects are in the cluster, at least some
//     of them. The wanted content is rolled out after it.
//
// A revision that would be chosen and cannot be read is none that is absent.
func Choose(all []Revision) (*Revision, *Blocked) {
	// Before its last Secret is there, a revision writes no object.
	all = slices.DeleteFunc(slices.Clone(all), func(one Revision) bool {
		return one.TakenOver || one.Err != nil && releasecommon.Status(one.Status).IsPending()
	})
	if len(all) == 0 {
		return nil, nil
	}
	switch status := releasecommon.Status(all[0].Status); status {
	case releasecommon.StatusUninstalling, releasecommon.StatusUninstalled:
		return nil, &Blocked{
			Message: fmt.Sprintf("revision %d of its Helm release is %s: what is left of it is not taken over", all[0].Version, status),
			Help:    "wait until the Secrets of the release are gone, or delete them",
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
