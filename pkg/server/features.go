package server

import (
	"context"
	"fmt"

	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	featuremetrics "k8s.io/component-base/metrics/prometheus/feature"
)

// BoxcutterRuntime makes the engine roll out ClusterExtensions as revisions. Without it, Helm
// applies them. OLM v1's operator-controller has a feature with this name.
const BoxcutterRuntime featuregate.Feature = "BoxcutterRuntime"

func addFeatures(gate featuregate.MutableVersionedFeatureGate) error {
	if _, known := gate.GetAll()[BoxcutterRuntime]; known {
		return nil
	}
	err := gate.Add(map[featuregate.Feature]featuregate.FeatureSpec{BoxcutterRuntime: {Default: true, PreRelease: featuregate.Beta}})
	if err != nil {
		return fmt.Errorf("adding the server's own feature gates: %w", err)
	}
	return nil
}

// setFeatures sets the gates of the flag. An earlier version may have had other gates.
func (o *Options) setFeatures() error {
	if err := o.Run.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("--feature-gates: %w; this version accepts the gates that `penstock serve --help` lists: remove any other", err)
	}
	return nil
}

// Enabled reports whether a feature is on, once the server runs.
func (o *Options) Enabled(feature featuregate.Feature) bool {
	return o.Run.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).Enabled(feature)
}

// measureFeatures exposes our features in the metrics of this replica, so that replicas with
// different gates are visible. It omits the features of the API server's library: hundreds of
// series that never change.
func (o *Options) measureFeatures(ctx context.Context) {
	featuremetrics.RecordFeatureInfo(ctx, string(BoxcutterRuntime), string(featuregate.Beta), o.Enabled(BoxcutterRuntime))
}
