// Package fuzzer fills hub objects with random values that a server could hold,
// for round-trip tests.
package fuzzer

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeserializer "k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/randfill"

	"github.com/penstock-project/penstock/pkg/apis/hco"
)

// Funcs returns the functions that fill our types. They fill in values that survive the codecs,
// such as defaults and valid JSON.
func Funcs(runtimeserializer.CodecFactory) []any {
	return []any{
		func(spec *hco.ConfigurationPlanSpec, c randfill.Continue) {
			c.FillNoCustom(spec)
			spec.Action = oneOf(c, hco.ActionDryRun, hco.ActionApply, hco.ActionIgnore)
			spec.FailurePolicy = oneOf(c, hco.FailurePolicyAbort, hco.FailurePolicyContinue)
			spec.OnConflict = oneOf(c, hco.OnConflictBlock, hco.OnConflictTake)
			if spec.ExpiresAfter == nil {
				spec.ExpiresAfter = &metav1.Duration{Duration: 24 * time.Hour}
			}
			if spec.Window != nil && spec.Window.TimeZone == "" {
				spec.Window.TimeZone = "UTC"
			}
		},
		func(object *hco.JSONObject, c randfill.Continue) {
			object.Raw = []byte(`{"n":` + strconv.Itoa(c.Intn(100)) + `}`)
		},
		func(requirement *hco.DefinitionRequirement, c randfill.Continue) {
			c.FillNoCustom(requirement)
			requirement.Access = oneOf(c, hco.AccessSchema, hco.AccessRead, hco.AccessWrite)
		},
	}
}

func oneOf[T any](c randfill.Continue, values ...T) T {
	return values[c.Intn(len(values))]
}
