package v1alpha1

import (
	"net/url"

	"k8s.io/apimachinery/pkg/conversion"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// Convert_v1alpha1_RevisionPhase_To_olm_RevisionPhase converts what was decoded
// into what is kept: the server's caches hold every entry of every revision, and
// entries are most of what a revision is. So the copy has no spare capacity, and
// an entry shares the strings that are equal to those of the entry before it;
// objects of one kind mostly stand together.
func Convert_v1alpha1_RevisionPhase_To_olm_RevisionPhase(in *RevisionPhase, out *olm.RevisionPhase, s conversion.Scope) error {
	if err := autoConvert_v1alpha1_RevisionPhase_To_olm_RevisionPhase(in, out, s); err != nil {
		return err
	}
	// out.Objects is the memory of in.Objects until here.
	out.Objects = compacted(out.Objects)
	return nil
}

// Convert_olm_RevisionPhase_To_v1alpha1_RevisionPhase converts what is kept, which may be packed.
func Convert_olm_RevisionPhase_To_v1alpha1_RevisionPhase(in *olm.RevisionPhase, out *RevisionPhase, s conversion.Scope) error {
	if in.Packed == nil {
		return autoConvert_olm_RevisionPhase_To_v1alpha1_RevisionPhase(in, out, s)
	}
	unpacked := *in
	unpacked.Objects, unpacked.Packed = in.List(), nil
	return autoConvert_olm_RevisionPhase_To_v1alpha1_RevisionPhase(&unpacked, out, s)
}

func compacted(objects []olm.RevisionObject) []olm.RevisionObject {
	if objects == nil {
		return nil
	}
	kept := make([]olm.RevisionObject, len(objects))
	copy(kept, objects)
	for i := 1; i < len(kept); i++ {
		share(&kept[i].APIVersion, kept[i-1].APIVersion)
		share(&kept[i].Kind, kept[i-1].Kind)
		share(&kept[i].Namespace, kept[i-1].Namespace)
	}
	return kept
}

func share(s *string, other string) {
	if *s == other {
		*s = other
	}
}

// Convert_url_Values_To_v1alpha1_RevisionDiffOptions reads the query of a diff. The
// library takes any word but "false" and "0" for true.
func Convert_url_Values_To_v1alpha1_RevisionDiffOptions(in *url.Values, out *RevisionDiffOptions, s conversion.Scope) error {
	if _, err := olm.QueryBool(*in, "unified"); err != nil {
		return err
	}
	return autoConvert_url_Values_To_v1alpha1_RevisionDiffOptions(in, out, s)
}
