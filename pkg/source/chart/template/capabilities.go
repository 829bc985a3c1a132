package template

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
)

// Capabilities has a cluster's version and kinds. Templates see them as .Capabilities, as with
// Helm.
type Capabilities struct {
	// Version, Major and Minor are the cluster's version, such as v1.36.3, 1 and 36.
	Version string `json:"version"`
	Major   string `json:"major"`
	Minor   string `json:"minor"`
	// APIVersions are the served group versions (policy/v1) and kinds (policy/v1/PodDisruptionBudget), sorted.
	APIVersions []string `json:"apiVersions"`
	// ClusterScoped are the cluster-scoped kinds, such as Lamp.example.com. Templates do not see
	// them.
	ClusterScoped []string `json:"clusterScoped,omitempty"`
	// Unknown are the group versions whose API server does not answer. A chart that queries one of
	// their kinds is refused, since the kind may exist.
	Unknown []string `json:"unknown,omitempty"`
}

// unknownKinds is the text by which the parent process recognises this error, since Helm's engine
// turns errors of functions into text.
const unknownKinds = "the cluster cannot say which kinds it serves in"

// capabilitiesOf returns the capabilities that templates see.
func capabilitiesOf(request Request) (*common.Capabilities, error) {
	capabilities := common.DefaultCapabilities.Copy()
	if cluster := request.Cluster; cluster != nil {
		capabilities.KubeVersion = common.KubeVersion{Version: cluster.Version, Major: cluster.Major, Minor: cluster.Minor}
		capabilities.APIVersions = cluster.APIVersions
	}
	if request.KubeVersion != "" {
		version, err := common.ParseKubeVersion(request.KubeVersion)
		if err != nil {
			return nil, fmt.Errorf("version of Kubernetes %q: %w", request.KubeVersion, err)
		}
		capabilities.KubeVersion = *version
	}
	capabilities.APIVersions = append(slices.Clone(capabilities.APIVersions), request.APIVersions...)
	return capabilities, nil
}

// partialCapabilities replace Helm's capabilities when some kinds of the cluster are unknown.
type partialCapabilities struct {
	*common.Capabilities
	APIVersions partialVersions
}

// partialVersions are the APIVersions. An entry that ends in unknownSuffix is a group version whose
// kinds are unknown.
type partialVersions []string

const unknownSuffix = "/(unknown)"

func partial(capabilities *common.Capabilities, unknown []string) *partialCapabilities {
	versions := slices.Clone([]string(capabilities.APIVersions))
	for _, one := range unknown {
		versions = append(versions, one+unknownSuffix)
	}
	return &partialCapabilities{Capabilities: capabilities, APIVersions: versions}
}

// Has reports whether a group version or a kind is served.
func (v partialVersions) Has(asked string) (bool, error) {
	if slices.Contains(v, asked) {
		return true, nil
	}
	if at := strings.LastIndex(asked, "/"); at > 0 && slices.Contains(v, asked[:at]+unknownSuffix) {
		return false, fmt.Errorf("%s %s, because the API server of that group does not answer, and the chart asks for %s: repair the API server, or delete its APIService", unknownKinds, asked[:at], asked)
	}
	return false, nil
}
