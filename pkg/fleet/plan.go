package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/penstock-project/penstock/pkg/window"
)

// Plan is one change to many clusters, as users review and approve it.
type Plan struct {
	// Waves lists the waves in order.
	Waves []Wave
	// Clusters lists the clusters by name. Each cluster is in one wave.
	Clusters []Cluster
	// Deadline limits the time in which a cluster must become healthy with the new content.
	Deadline time.Duration
}

// Wave is a barrier: clusters of later waves wait for it.
type Wave struct {
	Name   string
	Bounds Bounds
	// Soak is the time that each cluster must stay healthy with the new content.
	Soak time.Duration
	// AsksAgain is true if the wave needs a separate approval after the earlier waves.
	AsksAgain bool
	// Window limits the time in which clusters of the wave may begin; nil means always.
	Window *Window `json:",omitempty"`
}

// Window is a recurring time in the format of package window.
type Window struct {
	Schedule, TimeZone string
	Duration           time.Duration
}

// at returns the open span at now, or else the next span.
func (w *Window) at(now time.Time) (span window.Span, open bool, err error) {
	recurs, err := window.New(w.Schedule, w.TimeZone, w.Duration)
	if err != nil {
		return window.Span{}, false, err
	}
	span, open = recurs.At(now)
	return span, open, nil
}

// Bounds limit the numbers of clusters of a wave. Number computes them.
type Bounds struct {
	// MaxUnavailable is how many clusters may be changing or unhealthy together: at least 1.
	MaxUnavailable int
	// MaxFailures is how many clusters may fail before the rollout halts.
	MaxFailures int
	// MaxUnreachable is how many clusters may be unreachable before the rollout halts.
	MaxUnreachable int
}

// Cluster is one cluster of a plan.
type Cluster struct {
	// Name is the name of its Secret.
	Name string
	// UID is the uid of its namespace kube-system.
	UID string
	// Wave is the name of its wave.
	Wave string
	// Before and After are the digests of its present and its new content. Before is empty for an
	// installation.
	Before, After string
	// Present is true if the cluster ran After for the soak time before this rollout. Such a
	// cluster does not change, but it counts against the bounds of its wave.
	Present bool `json:",omitempty"`
}

// Digest returns the digest of a plan. An approval names this digest, so it approves exactly these
// clusters, changes, waves and bounds.
func (p *Plan) Digest() string { return digest("fleet", p) }

// WaveDigest returns the digest that the approval of a later wave names. It covers the plan, the
// wave, and the state of each cluster of the earlier waves.
func (p *Plan) WaveDigest(progress Progress, wave string) string {
	earlier := map[string]any{}
	for _, cluster := range p.before(wave) {
		at := progress.Clusters[cluster.Name]
		earlier[cluster.Name] = []any{at.State, at.Attempt, at.Reason}
	}
	return digest("fleet-wave", []any{p.Digest(), wave, earlier})
}

// Validate returns the faults of a plan. The rule of the package holds for every plan without
// faults.
func (p *Plan) Validate() error {
	waves, names, uids := map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, wave := range p.Waves {
		switch {
		case wave.Name == "" || waves[wave.Name]:
			return fmt.Errorf("wave %q: names must be set, and unique", wave.Name)
		case wave.Bounds.MaxUnavailable < 1 || wave.Bounds.MaxFailures < 0 || wave.Bounds.MaxUnreachable < 0 || wave.Soak < 0:
			return fmt.Errorf("wave %s: maxUnavailable must be 1 or more, and the other bounds and the soak time 0 or more, found %+v and %s", wave.Name, wave.Bounds, wave.Soak)
		}
		if wave.Window != nil {
			if _, _, err := wave.Window.at(time.Time{}); err != nil {
				return fmt.Errorf("wave %s: %w", wave.Name, err)
			}
		}
		waves[wave.Name] = true
	}
	if p.Deadline <= 0 {
		return fmt.Errorf("the deadline must be above 0, found %s", p.Deadline)
	}
	for _, cluster := range p.Clusters {
		switch other, known := uids[cluster.UID]; {
		case cluster.Name == "" || names[cluster.Name]:
			return fmt.Errorf("cluster %q: names must be set, and unique", cluster.Name)
		case cluster.UID == "" || cluster.After == "":
			return fmt.Errorf("cluster %s: its uid and its new content must be known", cluster.Name)
		case cluster.Present && cluster.Before != cluster.After:
			return fmt.Errorf("cluster %s: it has the content already, so both contents must be one, found %q and %q", cluster.Name, cluster.Before, cluster.After)
		case known:
			return fmt.Errorf("clusters %s and %s are one: both have uid %s", other, cluster.Name, cluster.UID)
		case !waves[cluster.Wave]:
			return fmt.Errorf("cluster %s is in wave %q, which does not exist", cluster.Name, cluster.Wave)
		}
		names[cluster.Name], uids[cluster.UID] = true, cluster.Name
	}
	return nil
}

func (p *Plan) of(wave string) []Cluster {
	var clusters []Cluster
	for _, cluster := range p.Clusters {
		if cluster.Wave == wave {
			clusters = append(clusters, cluster)
		}
	}
	return clusters
}

// before returns the clusters that change in the waves before the given wave.
func (p *Plan) before(wave string) []Cluster {
	var clusters []Cluster
	for _, w := range p.Waves {
		if w.Name == wave {
			break
		}
		clusters = append(clusters, p.of(w.Name)...)
	}
	return slices.DeleteFunc(clusters, func(cluster Cluster) bool { return cluster.Present })
}

// Number computes a bound for a wave of some clusters. A percentage is rounded down, and is at
// least 1. A bound that would never let a cluster begin is an error.
func Number(value int, percent bool, clusters, least int) (int, error) {
	switch {
	case percent && (value < 1 || value > 100):
		return 0, fmt.Errorf("must be between 1%% and 100%%, found %d%%", value)
	case percent:
		return max(clusters*value/100, 1), nil
	case value < least:
		return 0, fmt.Errorf("must be %d or more, found %d", least, value)
	}
	return value, nil
}

func digest(kind string, content any) string {
	raw, err := json.Marshal([]any{"penstock/" + kind + "/1", content})
	if err != nil {
		panic(err) // content consists of strings, numbers and lists
	}
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}
