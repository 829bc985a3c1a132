package status

import (
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// Facts are the known facts of an extension after a pass.
type Facts struct {
	// Extension is the object, with the status before.
	Extension *extension.Extension
	// Revisions are the revisions of the extension, newest first, including archived ones and those
	// that are being deleted. They are not changed.
	Revisions []*olmv1alpha1.ClusterExtensionRevision
	// RevisionsErr is the error of reading the revisions. Their status then stays as it is.
	RevisionsErr error
	// Undecided is true if the author's last write is valid and has led to no revision yet. An
	// annotation does not change the generation.
	Undecided bool
	// Outcome is the outcome of the pass.
	Outcome Outcome
	// Deprecations are the deprecations of the chosen catalog. Nil when no catalog answered.
	Deprecations *Deprecations
	// Upgrades has the versions of the catalogs beyond the installed one. Nil when unknown.
	Upgrades *Upgrades
	// Now is the time of conditions that change.
	Now time.Time
}

// Outcome is the progress of a pass over an extension. The zero value is Pending.
type Outcome struct {
	Result Result
	// Message is for conditions of OLM v1: OLM's message word for word where it has one, without
	// the prefix that names the resolved bundle. It is empty when the result is Settled, or when it
	// is Pending and the status must not change.
	Message string
	// Why has further facts for Ready: the nearest version, a missing object, the remedy. It ends
	// with a command when a command helps. It may be empty.
	Why string
	// Later names the maintenance window that an approval for later waits for, empty before its
	// time has come.
	Later string
	// Bundle is the resolved bundle, nil for none.
	Bundle *Bundle
}

// Bundle is the bundle that the catalogs led to, or the image itself.
type Bundle struct {
	Name, Version string
	// Catalog and Channel are empty when the source is no catalog.
	Catalog, Channel string
}

// Deprecations are messages of a catalog. An entry without a message is not reported, as in OLM v1.
type Deprecations struct {
	// Package has the deprecations of the package, Channels those of the requested channels (of all
	// when none is), and Installed those of the installed bundle, which may differ from the
	// resolved one.
	Package, Channels, Installed []string
}

// Upgrades are versions beyond the installed one.
type Upgrades struct {
	// Allowed is the newest version that the spec allows and an upgrade leads to, empty when it is
	// the installed one.
	Allowed string
	// Newest is the newest version in the requested channels, empty when no catalog has the
	// package.
	Newest string
	// Blocked are newer versions that Penstock does not install, the newest first, with the
	// reasons.
	Blocked []BlockedVersion
}

// BlockedVersion is a newer version that is not allowed.
type BlockedVersion struct{ Version, Why string }
