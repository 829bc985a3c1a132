package install_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/apitesting/roundtrip"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"

	"github.com/penstock-project/penstock/pkg/apis/catalog/install"
)

// Every kind survives hub -> v1alpha1 -> JSON -> v1alpha1 -> hub, and is deep
// copied on the way.
func TestRoundTrip(t *testing.T) {
	roundtrip.RoundTripTestForAPIGroup(t, install.Install, fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs))
}
