// Package upgrades lists the versions in the catalogs beyond the installed one: the version that
// Penstock will install, and newer versions that it will not install, with the reasons. It is pure.
// The resolver chooses the version to install.
package upgrades

import (
	"cmp"
	"errors"
	"slices"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/text"
)

// MaxBlocked limits the listed versions that Penstock does not install.
const MaxBlocked = 10

// longestWhy limits the reason for one version, in bytes, because the text of catalogs is
// untrusted.
const longestWhy = 500

// Upgrades holds the versions in catalogs for an extension. A field is empty if there is no such
// version.
type Upgrades struct {
	// Installed is the installed version.
	Installed string `json:"installed,omitempty"`
	// Allowed is the version that the spec selects now, which can be the installed version. With
	// manual approval it becomes a proposal. AllowedChannel and AllowedCatalog contain it.
	Allowed        string `json:"allowed,omitempty"`
	AllowedChannel string `json:"allowedChannel,omitempty"`
	AllowedCatalog string `json:"allowedCatalog,omitempty"`
	// AllowedNeeds is the lowest Kubernetes version that the allowed version supports; empty if
	// unstated.
	AllowedNeeds string `json:"-"`
	// Newest is the highest version in the requested channels and catalogs.
	Newest string `json:"newest,omitempty"`
	// Blocked lists versions above both the installed and the allowed version, newest first, with
	// the reason why Penstock does not install them. BlockedMore counts further versions.
	Blocked     []Blocked `json:"blocked,omitempty"`
	BlockedMore int       `json:"blockedMore,omitempty"`
	// None is the reason why the spec allows no version; empty otherwise.
	None string `json:"none,omitempty"`
}

// Blocked is a version that Penstock does not install.
type Blocked struct {
	Version string `json:"version"`
	Catalog string `json:"catalog"`
	Cause   Cause  `json:"cause"`
	// Why describes the cause and the remedy.
	Why string `json:"why"`
}

// Cause is the reason why a version is not installed.
type Cause string

// Causes. The last one needs the least to be installed.
const (
	// OtherCatalog: only catalogs that spec.source.catalog.selector does not match have the
	// version.
	OtherCatalog Cause = "OtherCatalog"
	// Channel: the version is in none of spec.source.catalog.channels.
	Channel Cause = "Channel"
	// Range: the version is outside of spec.source.catalog.version.
	Range Cause = "Range"
	// NotSuccessor: the catalog has no upgrade from the installed version, and
	// spec.source.catalog.upgradeConstraintPolicy requires one.
	NotSuccessor Cause = "NotSuccessor"
	// ClusterVersion: the version needs a newer Kubernetes than the cluster has.
	ClusterVersion Cause = "ClusterVersion"
	// Deprecated: the catalog deprecates the version, and has another one.
	Deprecated Cause = "Deprecated"
	// Priority: another catalog with a higher priority decides.
	Priority Cause = "Priority"
	// Tie: several catalogs have the same priority.
	Tie Cause = "Tie"
	// Unsupported: the version was chosen, but cannot be installed.
	Unsupported Cause = "Unsupported"
)

// causeRules maps a cause to rules of the resolver.
type causeRules struct {
	cause Cause
	rules []resolve.Rule
}

func causes() []causeRules {
	return []causeRules{
		{OtherCatalog, nil},
		{Channel, []resolve.Rule{resolve.NotInChannel}},
		{Range, []resolve.Rule{resolve.OutsideRange}},
		{NotSuccessor, []resolve.Rule{resolve.NotSuccessor}},
		{ClusterVersion, []resolve.Rule{resolve.ClusterVersion}},
		{Deprecated, []resolve.Rule{resolve.DeprecatedBundle, resolve.DeprecatedInCatalog}},
		{Priority, []resolve.Rule{resolve.LowerPriority}},
		{Tie, nil},
		{Unsupported, nil},
	}
}

// Available reports whether a version newer than the installed one exists, allowed or not.
func (u *Upgrades) Available() bool { return u.Comes() || len(u.Blocked) > 0 }

// Comes reports whether the spec selects another version than the installed one.
func (u *Upgrades) Comes() bool { return u.Allowed != "" && u.Allowed != u.Installed }

// Request returns an extension's request to the resolver. installed is nil if nothing is installed.
func Request(source extension.Catalog, installed *resolve.Installed) resolve.Request {
	return resolve.Request{
		Package: source.PackageName, Version: source.Version, Channels: source.Channels, Selector: source.Selector,
		SelfCertified: source.UpgradeConstraintPolicy == extension.SelfCertified, Installed: installed,
	}
}

// Of returns the versions. Its errors are the resolver's, about the request and about unreadable
// catalogs: then the versions are unknown.
func Of(request resolve.Request, catalogs []resolve.Catalog) (*Upgrades, error) {
	survey, err := resolve.Look(request, catalogs)
	if err != nil {
		return nil, err
	}
	out := &Upgrades{}
	var above []fbc.Version
	if request.Installed != nil {
		out.Installed = text.Line(request.Installed.Version, longestWhy)
		if version, err := fbc.ParseVersion(request.Installed.Version); err == nil {
			above = append(above, version)
		}
	}
	if chosen := survey.Resolution; chosen != nil {
		out.Allowed, out.AllowedChannel, out.AllowedCatalog = chosen.Version.String(), text.Line(chosen.Channel, longestWhy), chosen.Catalog
		if least, needs := resolve.MinKubernetes(chosen.Bundle); needs {
			out.AllowedNeeds = least.String()
		}
		above = append(above, chosen.Version)
	}
	if newest, found := survey.Newest(); found {
		out.Newest = newest.String()
	}
	if survey.Err != nil {
		out.None = text.Line(reasonOf(survey.Err), longestWhy)
	}
	out.block(survey, above)
	return out, nil
}

// reasonOf returns the reason with the remedy, or else upstream's message.
func reasonOf(err error) string {
	if failed := (*resolve.Error)(nil); errors.As(err, &failed) && failed.Reason != "" {
		return failed.Reason
	}
	return err.Error()
}

// candidate is a version that is not installed.
type candidate struct {
	resolve.Seen
	cause Cause
	rank  int
}

// block lists the versions that are higher than all versions in above. For each version it uses the
// catalog that needs the least to install it.
func (u *Upgrades) block(survey *resolve.Survey, above []fbc.Version) {
	var found []candidate
	add := func(all []resolve.Seen, cause func(resolve.Seen) Cause) {
		for _, one := range all {
			higher := one.Node.Readable && !slices.ContainsFunc(above, func(v fbc.Version) bool { return one.Node.Version.Compare(v) <= 0 })
			if because := cause(one); higher && because != "" {
				rank := slices.IndexFunc(causes(), func(known causeRules) bool { return known.cause == because })
				found = append(found, candidate{Seen: one, cause: because, rank: rank})
			}
		}
	}
	add(survey.Seen, func(one resolve.Seen) Cause { return causeOf(survey, one) })
	add(survey.Elsewhere, func(resolve.Seen) Cause { return OtherCatalog })
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(b.Node.Version.Compare(a.Node.Version), cmp.Compare(b.rank, a.rank), cmp.Compare(a.Catalog, b.Catalog))
	})
	found = slices.CompactFunc(found, func(a, b candidate) bool { return a.Node.Version.Compare(b.Node.Version) == 0 })
	for _, one := range found[:min(len(found), MaxBlocked)] {
		u.Blocked = append(u.Blocked, Blocked{Version: one.Node.Version.String(), Catalog: one.Catalog, Cause: one.cause, Why: text.Line(why(survey, one), longestWhy)})
	}
	u.BlockedMore = len(found) - len(u.Blocked)
}

// causeOf returns the cause; empty for a bundle that is refused only because a better one was
// chosen.
func causeOf(survey *resolve.Survey, one resolve.Seen) Cause {
	switch {
	case one.Rule == "" && survey.Tie() != "":
		return Tie
	case one.Rule == "" && survey.Err != nil:
		return Unsupported
	}
	for _, known := range causes() {
		if slices.Contains(known.rules, one.Rule) {
			return known.cause
		}
	}
	return ""
}

func why(survey *resolve.Survey, one candidate) string {
	switch one.cause {
	case OtherCatalog:
		return "only catalog " + one.Catalog + " has it, and selector does not choose that catalog"
	case Tie:
		return survey.Tie()
	case Unsupported:
		return survey.Err.Error()
	case Channel, Range, NotSuccessor, ClusterVersion, Deprecated, Priority:
	}
	return survey.Why(one.Seen)
}
