// Package upgrades lists the versions in the catalogs beyond the installed one: the version that
// Penstock will install, newer versions that it will not, and why. It is pure. The version to
// install is always the resolver's choice.
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

// MaxBlocked bounds the listed versions that Penstock does not install.
const MaxBlocked = 10

// longestWhy bounds the reason of one version, in bytes, because catalogs are foreign input.
const longestWhy = 500

// Upgrades has the versions in catalogs for an extension. A field is empty where there is no such
// version.
type Upgrades struct {
	// Installed is the version that is installed.
	Installed string `json:"installed,omitempty"`
	// Allowed is the version that the spec selects now, which can be the installed one. With manual
	// approval it becomes a proposal. AllowedChannel and AllowedCatalog contain it.
	Allowed        string `json:"allowed,omitempty"`
	AllowedChannel string `json:"allowedChannel,omitempty"`
	AllowedCatalog string `json:"allowedCatalog,omitempty"`
	// AllowedNeeds is the lowest Kubernetes of the allowed version; empty when it states none.
	AllowedNeeds string `json:"-"`
	// Newest is the highest version in the requested channels and catalogs.
	Newest string `json:"newest,omitempty"`
	// Blocked lists versions above both the installed and the allowed one, the newest
	// first, with the reason why Penstock does not install them. BlockedMore counts further
	// ones.
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
	// Why has the cause in words, and the remedy.
	Why string `json:"why"`
}

// Cause is the reason why a version is not installed.
type Cause string

// Causes, the one that is nearest to coming last.
const (
	// OtherCatalog: only catalogs that spec.source.catalog.selector does not choose have it.
	OtherCatalog Cause = "OtherCatalog"
	// Channel: it is in none of spec.source.catalog.channels.
	Channel Cause = "Channel"
	// Range: it is outside of spec.source.catalog.version.
	Range Cause = "Range"
	// NotSuccessor: the catalog has no upgrade to it from the installed version, and
	// spec.source.catalog.upgradeConstraintPolicy requires one.
	NotSuccessor Cause = "NotSuccessor"
	// ClusterVersion: it needs a newer Kubernetes than the cluster has.
	ClusterVersion Cause = "ClusterVersion"
	// Deprecated: the catalog deprecates it, and has another version.
	Deprecated Cause = "Deprecated"
	// Priority: another catalog has a higher priority.
	Priority Cause = "Priority"
	// Tie: several catalogs of the same priority might be meant.
	Tie Cause = "Tie"
	// Unsupported: it was chosen, but cannot be installed.
	Unsupported Cause = "Unsupported"
)

// causeRules is a cause with its rules of the resolver.
type causeRules struct {
	cause Cause
	rules []resolve.Rule
}

// causes has them in order.
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

// Available reports whether there is a newer version than the installed one, allowed or not.
func (u *Upgrades) Available() bool { return u.Comes() || len(u.Blocked) > 0 }

// Comes reports whether the spec allows another version than the installed one.
func (u *Upgrades) Comes() bool { return u.Allowed != "" && u.Allowed != u.Installed }

// Request returns an extension's request to the catalogs; installed is nil when nothing is
// installed.
func Request(source extension.Catalog, installed *resolve.Installed) resolve.Request {
	return resolve.Request{
		Package: source.PackageName, Version: source.Version, Channels: source.Channels, Selector: source.Selector,
		SelfCertified: source.UpgradeConstraintPolicy == extension.SelfCertified, Installed: installed,
	}
}

// Of returns the versions. Its errors are the resolver's about the request and about catalogs that
// cannot be read: then the versions are unknown.
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

// reasonOf prefers what helps to what upstream says.
func reasonOf(err error) string {
	if failed := (*resolve.Error)(nil); errors.As(err, &failed) && failed.Reason != "" {
		return failed.Reason
	}
	return err.Error()
}

// candidate is a version that does not come.
type candidate struct {
	resolve.Seen
	cause Cause
	rank  int
}

// block lists the versions above all of these, each once: in the catalog where it is nearest
// to coming.
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

// causeOf is "" for a bundle that nothing blocks: a better one was chosen.
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
