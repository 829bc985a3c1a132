package helm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kept limits the adopted revisions of a release.
const Kept = 5

// History has the adopted revisions of a release.
type History struct {
	// Deployed is the revision whose objects are in the cluster.
	Deployed Release
	// Older are up to four earlier revisions, newest first.
	Older []Release
	// Failed is the newest revision after the deployed one that failed; its changes may be in the
	// cluster. It is nil if there is none.
	Failed *Release
	// Highest is the highest revision number of the release.
	Highest int
}

// Choose selects the revisions of a release to adopt. The error has the reason why a release cannot
// be adopted, and the remedy.
func Choose(all []Release) (History, error) {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Release) int { return cmp.Compare(b.Version, a.Version) })
	if len(sorted) == 0 {
		return History{}, fmt.Errorf("there is no such release")
	}
	newest := sorted[0]
	switch status := newest.Info.Status; {
	case strings.HasPrefix(status, "pending-"):
		return History{}, fmt.Errorf("revision %d is %s: Helm is at work, or was interrupted: wait, or run helm rollback", newest.Version, status)
	case status == "uninstalling" || status == "uninstalled":
		return History{}, fmt.Errorf("revision %d is %s: there is nothing to adopt", newest.Version, status)
	}
	at := slices.IndexFunc(sorted, func(r Release) bool { return r.Info.Status == StatusDeployed })
	if at < 0 {
		return History{}, fmt.Errorf("no revision is deployed; the newest one, %d, is %s: run helm upgrade or helm rollback first", newest.Version, newest.Info.Status)
	}
	history := History{Deployed: sorted[at], Highest: newest.Version}
	if at > 0 {
		history.Failed = &sorted[0]
	}
	older := sorted[at+1:]
	history.Older = older[:min(len(older), Kept-1)]
	return history, nil
}
