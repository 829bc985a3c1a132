package release

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/manifest/release"
)

// Annotations that select the clusters of a manifest.
const (
	includePrefix          = "include.release.openshift.io/"
	excludePrefix          = "exclude.release.openshift.io/"
	capabilityAnnotation   = "capability.openshift.io/name"
	featureSetAnnotation   = "release.openshift.io/feature-set"
	featureGateAnnotation  = "release.openshift.io/feature-gate"
	majorVersionAnnotation = "release.openshift.io/major-version"
)

const (
	defaultFeatureSet = "Default"
	everyCapability   = "*"
)

// omits returns the reason why a manifest is not wanted; empty if it is wanted. It returns an
// error if a needed option is missing or a value is invalid.
func (o Options) omits(object manifest.Object) (string, error) {
	var content struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(object.JSON, &content); err != nil {
		return "", fmt.Errorf("reading the annotations of %s: %w", object.ID, err)
	}
	annotations := content.Metadata.Annotations
	for _, question := range []func(manifest.ID, map[string]string) (string, error){
		o.profile, o.excluded, o.features, o.gates, o.capabilities, deleted, majorVersion,
	} {
		if why, err := question(object.ID, annotations); why != "" || err != nil {
			return why, err
		}
	}
	// Only wanted manifests are checked, because the others may be written for another version of
	// Penstock.
	_, offences := release.MarkOf(object)
	return "", checkMarks(offences)
}

// profile keeps manifests for the cluster's profile. Only the value "true" counts.
func (o Options) profile(id manifest.ID, annotations map[string]string) (string, error) {
	if o.Profile == "" {
		for key := range annotations {
			if name, ok := strings.CutPrefix(key, includePrefix); ok {
				return "", fmt.Errorf("%s is for clusters of some profiles, for instance %q: name the profile of your cluster with --profile", id, name)
			}
		}
		return "", nil
	}
	switch value, found := annotations[includePrefix+o.Profile]; {
	case value == "true":
		return "", nil
	case found && value != "false":
		return "", fmt.Errorf(`%s: annotation %s is %q, want "true" or "false"`, id, includePrefix+o.Profile, value)
	}
	return "not for profile " + o.Profile, nil
}

// excluded drops manifests that are excluded for an identifier of the cluster.
func (o Options) excluded(_ manifest.ID, annotations map[string]string) (string, error) {
	for _, identifier := range o.Exclude {
		if annotations[excludePrefix+identifier] == "true" {
			return "excluded for " + identifier, nil
		}
	}
	return "", nil
}

// features keeps manifests for the feature set, and manifests that name no feature set.
func (o Options) features(id manifest.ID, annotations map[string]string) (string, error) {
	value, found := annotations[featureSetAnnotation]
	if !found {
		return "", nil
	}
	if _, both := annotations[featureGateAnnotation]; both {
		return "", fmt.Errorf("%s has both annotations %s and %s, which is ambiguous: remove one", id, featureSetAnnotation, featureGateAnnotation)
	}
	set := o.FeatureSet
	if set == "" {
		set = defaultFeatureSet
	}
	if slices.Contains(list(value, ","), set) {
		return "", nil
	}
	return "not for feature set " + set, nil
}

// gates keeps manifests whose feature gates are all on, and whose gates with a minus are all off.
func (o Options) gates(id manifest.ID, annotations map[string]string) (string, error) {
	value, found := annotations[featureGateAnnotation]
	if !found {
		return "", nil
	}
	if o.FeatureGates == nil {
		return "", fmt.Errorf("%s depends on the feature gates %q: say which ones are on with --feature-gates (--feature-gates= for none)", id, value)
	}
	for _, gate := range list(value, ",") {
		name, off := strings.CutPrefix(gate, "-")
		if slices.Contains(o.FeatureGates, name) == off {
			return "feature gates", nil
		}
	}
	return "", nil
}

// capabilities keeps manifests that need only capabilities of the cluster.
func (o Options) capabilities(id manifest.ID, annotations map[string]string) (string, error) {
	value, found := annotations[capabilityAnnotation]
	if !found {
		return "", nil
	}
	if len(o.Capabilities) == 0 {
		return "", fmt.Errorf("%s needs the capabilities %q: say which ones the cluster has with --capabilities (--capabilities=* for all)", id, value)
	}
	if slices.Contains(o.Capabilities, everyCapability) {
		return "", nil
	}
	for _, capability := range list(value, "+") {
		if !slices.Contains(o.Capabilities, capability) {
			return "capability " + capability, nil
		}
	}
	return "", nil
}

// deleted drops manifests of objects to delete: the engine deletes an object that no revision lists
// any more.
func deleted(id manifest.ID, annotations map[string]string) (string, error) {
	switch value, found := annotations[release.DeleteAnnotation]; {
	case !found:
		return "", nil
	case value != "true":
		return "", fmt.Errorf(`%s: annotation %s is %q, want "true"`, id, release.DeleteAnnotation, value)
	}
	return "to be deleted", nil
}

func majorVersion(id manifest.ID, annotations map[string]string) (string, error) {
	if value, found := annotations[majorVersionAnnotation]; found {
		return "", fmt.Errorf("%s is for the major versions %q (annotation %s), and the version of the cluster is not known here: remove the annotation, or the manifest", id, value, majorVersionAnnotation)
	}
	return "", nil
}

func list(value, separator string) []string {
	var parts []string
	for part := range strings.SplitSeq(value, separator) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
