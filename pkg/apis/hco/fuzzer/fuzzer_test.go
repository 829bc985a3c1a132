package fuzzer_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"

	hcofuzzer "github.com/penstock-project/penstock/pkg/apis/hco/fuzzer"
	"github.com/penstock-project/penstock/pkg/apis/hco/install"
)

// TestRoundTrip: every kind survives hub -> v1alpha1 -> JSON -> v1alpha1 -> hub, and a deep copy.
func TestRoundTrip(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, install.Install,
		fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, hcofuzzer.Funcs))
}
