//go:build integration

package extension_test

import (
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// farScenarios take a minute, or need another cluster.
func farScenarios() map[string]scenario {
	return map[string]scenario{
		"OnFailure": onFailure,
		"Target":    elsewhere,
		"Older":     older,
	}
}

// OnFailure: a rollout that misses its deadline is rolled back. The rollback holds until the spec
// is written again.
func onFailure(w shared) {
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"},
		bundle{Package: w.name, Version: "1.1.0", Replaces: "1.0.0", Image: plane.UnpullableImages + "nothing:v1"},
		bundle{Package: w.name, Version: "1.1.1", Replaces: "1.1.0", SkipRange: ">=1.0.0 <1.1.1"})
	alice := w.author("alice")
	write := func(version string) {
		w.apply(alice, w.name, w.extend(w.name, w.name, "version: "+version, extension.OnFailureAnnotation+": Rollback", extension.ProgressDeadlineAnnotation+`: "1"`))
	}
	write("1.0.0")
	w.awaitExtension(w.name, "it is installed", installed("1.0.0"))
	write("1.1.0")
	w.awaitRevision(w.name+"-3", "it is rolled back", func(r *olmv1alpha1.ClusterExtensionRevision) bool {
		return succeeded(r) && r.Annotations[olmv1alpha1.RollbackOfAnnotation] == w.name+"-1"
	})
	w.awaitExtension(w.name, "the rollback holds", all(is("Ready=False/Held: "+w.name+"-3", "Stalled=True/Held", "Progressing=False/Blocked", "Installed=True/Succeeded", "Available=True/ProbesSucceeded"),
		func(e *extension.Extension) bool {
			return e.Status.Install.Bundle.Version == "1.0.0" && len(e.Status.ActiveRevisions) == 1 && e.Status.ActiveRevisions[0].Name == w.name+"-3"
		}))
	write("1.1.1")
	w.awaitExtension(w.name, "the spec counts again", all(installed("1.1.1"), is("Ready=True/Succeeded", "Stalled=False/NotStalled")))
	w.awaitRevision(w.name+"-4", "it is a revision of its own", succeeded)
}
