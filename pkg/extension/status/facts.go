package status

import (
	"time"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

// Facts are the known facts of an extension after a pass.
type Facts struct {
	// Extension is the object with its previous status.
	Extension *extension.Extension
	// Revisions are the revisions of the extension, newest first. They include archived revisions
	// and revisions that are being deleted. They are not changed.
	Revisions []*olmv1alpha1.ClusterExtensionRevision
	// RevisionsErr is the error of reading the revisions. Then Installed and Ready become Unknown.
	RevisionsErr error
	// Undecided is true if the author's last write is valid and has led to no revision yet. The
	// generation does not show it, because an annotation does not change the generation.
	Undecided bool
	// Outcome is the result of the pass.
	Outcome Outcome
	// Deprecations are the deprecation messages of the chosen catalog; nil if no catalog answered.
	Deprecations *Deprecations
	// Upgrades has the catalogs' versions beyond the installed version; nil if unknown.
	Upgrades *Upgrades
	// Now is the transition time of conditions that change.
	Now time.Time
}

// Outcome is the result of a pass over an extension. The zero value is Pending.
type Outcome struct {
	Result Result
	// Message is for conditions of OLM v1: OLM's message word for word where it has one, without
	// the prefix that names the resolved bundle. It is empty if the result is Settled, or if it is
	// Pending and the status must not change.
	Message string
	// Why has the facts that explain Ready: the nearest version, a missing object, the remedy. It
	// ends with a command if a command helps. It may be empty.
	Why string
	// Later names the maintenance window for which a delayed approval waits; empty before the
	// approval's earliest time.
	Later string
	// Bundle is the resolved bundle; nil if there is none.
	Bundle *Bundle
}

// Bundle is the bundle that the catalogs resolved to, or the image itself.
type Bundle struct {
	Name, Version string
	// Catalog and Channel are empty if the source is not a catalog.
	Catalog, Channel string
}

// Deprecations are a catalog's messages. An entry without a message is not reported, as in OLM v1.
type Deprecations struct {
	// Package has the deprecations of the package. Channels has the deprecations of the requested
	// channels (of all if none is requested). Installed has the deprecations of the installed
	// bundle, which may differ from the resolved bundle.
	Package, Channels, Installed []string
}

// Upgrades are versions beyond the installed version.
type Upgrades struct {
	// Allowed is the newest version that the spec allows and an upgrade reaches; empty if it is
	// installed.
	Allowed string
	// Newest is the newest version in the requested channels; empty if no catalog has the package.
	Newest string
	// Blocked are newer versions that Penstock does not install, newest first, with the reasons.
	Blocked []BlockedVersion
}

// BlockedVersion is a newer version that Penstock does not install, with the reason.
type BlockedVersion struct{ Version, Why string }
