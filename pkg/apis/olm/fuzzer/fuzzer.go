// Package fuzzer fills hub objects with random values that a server could hold,
// for round-trip tests.
package fuzzer

import (
	"fmt"

	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Funcs returns the functions that fill our types. They fill in values that survive the codecs,
// such as defaults and valid JSON.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(spec *olm.ClusterExtensionRevisionSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.LifecycleState = oneOf(c, olm.LifecycleStateActive, olm.LifecycleStatePaused, olm.LifecycleStateArchived)
			spec.CollisionProtection = oneOf(c, olm.CollisionProtectionPrevent, olm.CollisionProtectionIfNoController, olm.CollisionProtectionNone)
			spec.OnFailure = oneOf(c, olm.OnFailureNone, olm.OnFailureRollback)
			spec.TeardownPolicy = oneOf(c, olm.TeardownPolicyDelete, olm.TeardownPolicyOrphan)
			spec.AdoptedTeardownPolicy = oneOf(c, olm.TeardownPolicyOrphan, olm.TeardownPolicyDelete)
		},
		func(phase *olm.RevisionPhase, c randfill.Continue) {
			c.FillNoCustom(phase)
			phase.Packed = nil // only a form of Objects in caches
		},
		func(manifest *olm.Manifest, c randfill.Continue) {
			manifest.Raw = fmt.Appendf(nil, `{"kind":"ConfigMap","data":{"n":"%d"}}`, c.Int63())
		},
	}
}

func oneOf[T any](c randfill.Continue, values ...T) T {
	return values[c.Intn(len(values))]
}
