package v1alpha1

import (
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Convert_olm_RevisionPhase_To_v1alpha1_RevisionPhase converts a phase whose objects may be packed.
func Convert_olm_RevisionPhase_To_v1alpha1_RevisionPhase(in *olm.RevisionPhase, out *RevisionPhase, s conversion.Scope) error {
	unpacked := *in
	unpacked.Unpack()
	return autoConvert_olm_RevisionPhase_To_v1alpha1_RevisionPhase(&unpacked, out, s)
}

// Convert_url_Values_To_v1alpha1_RevisionDiffOptions reads the query of a diff. It checks unified
// first, because the generated conversion reads every word except "false" and "0" as true.
func Convert_url_Values_To_v1alpha1_RevisionDiffOptions(in *url.Values, out *RevisionDiffOptions, s conversion.Scope) error {
	if _, err := olm.QueryBool(*in, "unified"); err != nil {
		return err
	}
	return autoConvert_url_Values_To_v1alpha1_RevisionDiffOptions(in, out, s)
}
