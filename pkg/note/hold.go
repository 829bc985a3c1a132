package note

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HoldOn maps each reason to the least severity at which a note holds an upgrade.
type HoldOn map[string]Severity

// DefaultHoldOn returns the reasons that hold by default.
func DefaultHoldOn() HoldOn {
	on := HoldOn{}
	for _, reason := range Reasons() {
		if reason.Holds {
			on[reason.Name] = Warning
		}
	}
	return on
}

// ParseHoldOn parses a list of reasons. A reason alone holds from Warning on; a suffix such as
// RightsGained:Info sets another severity. An empty list returns the default. Incomplete always
// holds.
func ParseHoldOn(list []string) (HoldOn, error) {
	if len(list) == 0 {
		return DefaultHoldOn(), nil
	}
	on := HoldOn{Incomplete: Warning}
	for _, entry := range list {
		name, severity, given := strings.Cut(strings.TrimSpace(entry), ":")
		if !given {
			severity = string(Warning)
		}
		switch known := slices.ContainsFunc(Reasons(), func(one Reason) bool { return one.Name == name }); {
		case !known:
			return nil, fmt.Errorf("%q is no reason of a note: it must be one of %s", name, strings.Join(names(), ", "))
		case !slices.Contains(Severities(), Severity(severity)):
			return nil, fmt.Errorf("%q is no severity of notes with the reason %s: it must be one of %s, %s, %s", severity, name, Critical, Warning, Info)
		case name == Incomplete:
			continue
		case on[name] != "":
			return nil, fmt.Errorf("%s is listed twice", name)
		}
		on[name] = Severity(severity)
	}
	return on, nil
}

// SplitHoldOn splits a comma-separated list of reasons.
func SplitHoldOn(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func names() []string {
	var all []string
	for _, reason := range Reasons() {
		all = append(all, reason.Name)
	}
	return all
}

// Holds reports whether a note of this reason and severity holds an upgrade.
func (h HoldOn) Holds(reason string, severity Severity) bool {
	least, listed := h[reason]
	return listed && severity.Rank() <= least.Rank()
}

// String returns the sorted list. Equal lists have equal texts.
func (h HoldOn) String() string {
	var all []string
	for _, reason := range slices.Sorted(maps.Keys(h)) {
		if h[reason] != Warning {
			reason += ":" + string(h[reason])
		}
		all = append(all, reason)
	}
	return strings.Join(all, ",")
}
