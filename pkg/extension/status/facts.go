package status

import (
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// Facts are what is known of an extension after a pass.
type Facts struct {
	// Extension is the object, with the status before.
	Extension *extension.Extension
	// Revisions are those of the extension, newest first, also archived ones and those that
	// are being deleted. They are not changed.
	Revisions []*olmv1alpha1.ClusterExtensionRevision
	// RevisionsErr is why the revisions are not known. Their status stays then.
	RevisionsErr error
	// Undecided is whether the author's last write counts and has led to no revision yet. An annotation does
	// not change the generation.
	Undecided bool
	// Outcome is what came of the pass.
	Outcome Outcome
	// Deprecations are those of the catalog that won. Nil when no catalog answered.
	Deprecations *Deprecations
	// Upgrades are what the catalogs have beyond what is installed. Nil when that is not
	// known.
	Upgrades *Upgrades
	// Now is the time of conditions that change.
	Now time.Time
}

// Outcome is how far a pass over an extension came. The zero value is Pending.
type Outcome struct {
	Result Result
	// Message is for conditions of OLM v1: its message to the letter where it has one, without
	// the prefix that names the resolved bundle. Empty when the result is Settled, and when it
	// is Pending and the status shall stay as it is.
	Message string
	// Why says what is known beyond Message: what is nearest, what is missing, what helps. It
	// ends with a command when one helps. It may be empty, and is told in Ready.
	Why string
	// Later says which maintenance window an approval for later waits for, empty before its time has
	// come.
	Later string
	// Bundle is what was resolved, nil when nothing was.
	Bundle *Bundle
}

// Bundle is what the catalogs led to, or the image itself.
type Bundle struct {
	Name, Version string
	// Catalog and Channel are empty when the source is no catalog.
	Catalog, Channel string
}

// Deprecations are messages of a catalog. An entry without a message is not told, as in OLM v1.
type Deprecations struct {
	// Package has those of the package, Channels those of the channels that are asked for (of
	// all when none is), and Installed those of the bundle that is installed, which may be
	// another one than was resolved.
	Package, Channels, Installed []string
}

// Upgrades are versions beyond the installed one.
type Upgrades struct {
	// Allowed is the newest version that the spec allows and an upgrade leads to, empty when
	// that is the installed one.
	Allowed string
	// Newest is the newest version in the channels that are asked for, empty when no catalog
	// has the package.
	Newest string
	// Blocked are newer versions that do not come, the newest first, and why.
	Blocked []BlockedVersion
}

// BlockedVersion is one that is newer and not allowed.
type BlockedVersion struct{ Version, Why string }
