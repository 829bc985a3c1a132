package review

import (
	"fmt"

	"github.com/Masterminds/semver/v3"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/plugin/screen"
)

// SayDowngrade prints a notice if a revision has a lower version than the previous one. It compares
// only semantic versions.
func SayDowngrade(on *screen.Screen, from, to *v1alpha1.ClusterExtensionRevision) {
	if said := downgrade(from.Annotations[v1alpha1.VersionAnnotation], to.Annotations[v1alpha1.VersionAnnotation]); said != "" {
		on.Para(screen.Yellow, screen.Notice, said)
	}
}

func downgrade(from, to string) string {
	before, errBefore := semver.NewVersion(from)
	after, errAfter := semver.NewVersion(to)
	if errBefore != nil || errAfter != nil || !after.LessThan(before) {
		return ""
	}
	return fmt.Sprintf("this is a downgrade: version %s → %s", from, to)
}
