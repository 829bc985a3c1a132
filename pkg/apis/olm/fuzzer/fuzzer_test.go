package fuzzer_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"

	olmfuzzer "github.com/penstock-project/penstock/pkg/apis/olm/fuzzer"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
)

// TestRoundTrip: every kind survives hub -> v1alpha1 -> JSON -> v1alpha1 -> hub, and a deep copy.
func TestRoundTrip(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, install.Install,
		fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, olmfuzzer.Funcs))
}
