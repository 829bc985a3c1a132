package revisiondiff

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/note"
	"github.com/penstock-project/penstock/pkg/signer"
)

// TestLostSigner: the first note is about an image with another signer. Revisions without a record
// of signers, from an older Penstock, are not compared.
func TestLostSigner(t *testing.T) {
	revision := func(record *signer.Record) *olm.ClusterExtensionRevision {
		return &olm.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.VerifiedAnnotation: record.String()}}}
	}
	by := func(name string) *signer.Record { return &signer.Record{Rule: "default", Signers: []string{name}} }
	other := v1alpha1.DiffNote{Severity: v1alpha1.NoteCritical, Reason: note.Deleted}
	for name, c := range map[string]struct {
		from, to *olm.ClusterExtensionRevision
		want     string
	}{
		"another":     {from: revision(by("a")), to: revision(by("b\n")), want: `image: signed by b\n, was signed by a`},
		"same":        {from: revision(by("a")), to: revision(by("a"))},
		"none before": {from: revision(nil), to: revision(by("a"))},
		"first":       {to: revision(by("a"))},
	} {
		t.Run(name, func(t *testing.T) {
			out := &v1alpha1.RevisionDiff{Notes: []v1alpha1.DiffNote{other}}
			lostSigner(out, c.from, c.to)
			want := []v1alpha1.DiffNote{other}
			if c.want != "" {
				want = slices.Insert(want, 0, v1alpha1.DiffNote{Severity: v1alpha1.NoteCritical, Reason: note.Signer, Message: c.want})
			}
			if diff := cmp.Diff(want, out.Notes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAsItWas: a cached answer contains its age, and the advice to ask again.
func TestAsItWas(t *testing.T) {
	want := "this is how the cluster was 1.5 s ago, when another request asked the same; ask again in a few seconds to see it as it is now"
	if got := asItWas(1500 * time.Millisecond).Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
