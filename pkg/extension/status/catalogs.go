package status

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/extension"
)

const (
	reasonUpgradeAllowed = "Allowed"
	reasonUpgradeBlocked = "Blocked"
	reasonNewest         = "NewestInstalled"
	reasonNoCatalogData  = "CatalogDataUnavailable"
	reasonNoUpgrades     = "NotFromCatalog"
)

const maxBlocked = 3

// deprecations sets the conditions about the deprecation of the package, the channels and the
// installed bundle, with OLM v1's texts.
func (w *writer) deprecations(found *Deprecations, v view) {
	if found == nil {
		w.deprecationsUnknown(v)
		return
	}
	w.deprecation(Deprecated, slices.Concat(found.Package, found.Channels, found.Installed), "not deprecated")
	w.deprecation(PackageDeprecated, found.Package, "package not deprecated")
	w.deprecation(ChannelDeprecated, found.Channels, "channel not deprecated")
	if v.installed == nil {
		w.set(BundleDeprecated, said{metav1.ConditionUnknown, ReasonAbsent, "no bundle installed yet"})
		return
	}
	w.deprecation(BundleDeprecated, found.Installed, "bundle not deprecated")
}

func (w *writer) deprecation(kind string, messages []string, not string) {
	messages = slices.DeleteFunc(slices.Clone(messages), func(message string) bool { return message == "" })
	if len(messages) == 0 {
		w.set(kind, said{metav1.ConditionFalse, ReasonNotDeprecated, not})
		return
	}
	w.set(kind, said{metav1.ConditionTrue, ReasonDeprecated, strings.Join(messages, "\n")})
}

func (w *writer) deprecationsUnknown(v view) {
	unknown := said{metav1.ConditionUnknown, ReasonDeprecationStatusUnknown, "deprecation status unknown: catalog data unavailable"}
	for _, kind := range []string{Deprecated, PackageDeprecated, ChannelDeprecated, BundleDeprecated} {
		w.set(kind, unknown)
	}
	if v.installed == nil {
		w.set(BundleDeprecated, said{metav1.ConditionUnknown, ReasonAbsent, "no bundle installed yet"})
	}
}

func upgrade(facts Facts, v view) said {
	found := facts.Upgrades
	switch {
	case v.installed == nil:
		return said{metav1.ConditionUnknown, ReasonAbsent, "no bundle installed yet"}
	case v.proposal != nil:
		told := proposal(v, facts.Outcome)
		told.status = metav1.ConditionTrue
		return told
	case facts.Outcome.waits():
		return said{metav1.ConditionTrue, string(facts.Outcome.Result), waiting(facts.Outcome)}
	case facts.Extension.Spec.Source.SourceType != extension.SourceCatalog:
		return said{metav1.ConditionFalse, reasonNoUpgrades, "the source is no catalog"}
	case found == nil || found.Newest == "" && found.Allowed == "" && len(found.Blocked) == 0:
		return said{metav1.ConditionUnknown, reasonNoCatalogData, "no catalog says which versions there are"}
	case found.Allowed != "" && !older(found.Allowed, v.installed.version()):
		reason, message := reasonUpgradeAllowed, fmt.Sprintf("%s is newer than %s, and allowed", found.Allowed, v.installed.version())
		if _, failed := verdicts()[facts.Outcome.Result]; failed {
			reason = string(facts.Outcome.Result)
			message += "; it is not installed: " + joined(facts.Outcome)
		}
		return said{metav1.ConditionTrue, reason, message + blocked(found, "; ")}
	case len(found.Blocked) > 0:
		return said{metav1.ConditionTrue, reasonUpgradeBlocked, strings.TrimPrefix(blocked(found, ""), " ")}
	}
	message := v.installed.version() + " is the newest version"
	if catalog := facts.Extension.Spec.Source.Catalog; catalog != nil && len(catalog.Channels) > 0 {
		message += " in the requested channels"
	}
	return said{metav1.ConditionFalse, reasonNewest, message}
}

// older reports whether a version is below another version. A spec may select an older version,
// which is not an upgrade. A version that cannot be parsed is not older.
func older(version, than string) bool {
	one, err := semver.Parse(version)
	if err != nil {
		return false
	}
	other, err := semver.Parse(than)
	return err == nil && one.LT(other)
}

// blocked names newer versions that Penstock does not install, with the reasons.
func blocked(found *Upgrades, separator string) string {
	if len(found.Blocked) == 0 {
		return ""
	}
	lines := make([]string, 0, maxBlocked+1)
	for _, one := range found.Blocked[:min(len(found.Blocked), maxBlocked)] {
		lines = append(lines, one.Version+" is newer, and blocked: "+one.Why)
	}
	if more := len(found.Blocked) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more are blocked", more))
	}
	return separator + strings.Join(lines, "; ")
}
