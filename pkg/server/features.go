package server

import (
	"context"
	"fmt"

	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	featuremetrics "k8s.io/component-base/metrics/prometheus/feature"
)

// BoxcutterRuntime makes the engine roll out ClusterExtensions as revisions. Without it, Helm
// applies them. OLM v1's operator-controller has a feature of this name.
const BoxcutterRuntime featuregate.Feature = "BoxcutterRuntime"

// addFeatures makes our features known to a gate, once.
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

// setFeatures sets the gates that the flag names. A gate of a former version may be gone.
func (o *Options) setFeatures() error {
	if err := o.Run.ComponentGlobalsRegistry.Set(); err != nil {
		return fmt.Errorf("--feature-gates: %w; this version takes those that `penstock serve --help` lists: remove the others", err)
	}
	return nil
}

// Enabled reports whether a feature is on, once the server runs.
func (o *Options) Enabled(feature featuregate.Feature) bool {
	return o.Run.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).Enabled(feature)
}

// measureFeatures shows our features in the metrics of this replica, so that replicas with
// different gates are seen. Those of the API server's library are left out: nobody has a use
// for a hundred series that never change.
func (o *Options) measureFeatures(ctx context.Context) {
	featuremetrics.RecordFeatureInfo(ctx, string(BoxcutterRuntime), string(featuregate.Beta), o.Enabled(BoxcutterRuntime))
}
