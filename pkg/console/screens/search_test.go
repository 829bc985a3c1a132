package screens

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// TestBest: an exact name is first, then names that begin with the text. A hit contains all words.
// The number of hits is bounded.
func TestBest(t *testing.T) {
	revision := func(name string, number int64, objects ...string) olmv1alpha1.ClusterExtensionRevision {
		one := olmv1alpha1.ClusterExtensionRevision{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{olmv1alpha1.VersionAnnotation: "1.4.0"}}}
		one.Spec.Revision = number
		phase := olmv1alpha1.RevisionPhase{Name: "all"}
		for _, object := range objects {
			phase.Objects = append(phase.Objects, olmv1alpha1.RevisionObject{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "web", Name: object})
		}
		one.Spec.Phases = append(one.Spec.Phases, phase)
		return one
	}
	all := append(hitsOf(append([]olmv1alpha1.ClusterExtensionRevision{
		revision("shop-2", 2, "shop", "my-shop", "Web:shop"), revision("workshop-1", 1, "saw"), revision("yard-9", 9, "crane"),
	}, archivedOf([]metav1.PartialObjectMetadata{
		{ObjectMeta: revision("shop-1", 1).ObjectMeta}, {ObjectMeta: revision("yard-10", 10).ObjectMeta}, {ObjectMeta: revision("none", 0).ObjectMeta},
	})...)), Hit{Of: hitPackage, Name: "shop"})
	for name, tc := range map[string]struct {
		wanted string
		want   []string
	}{
		"Name":     {"shop", []string{"Extension shop", "Package shop", "Object shop", "Revision shop-1", "Revision shop-2", "Extension workshop", "Revision workshop-1", "Object Web:shop", "Object my-shop"}},
		"Words":    {"deployment web/my", []string{"Object my-shop"}},
		"Version":  {"workshop 1.4", []string{"Extension workshop", "Revision workshop-1"}},
		"Earlier":  {"crane", nil}, // an object of an earlier revision
		"Archived": {"yard", []string{"Extension yard", "Revision yard-10", "Revision yard-9"}},
		"Nothing":  {"nothing", nil},
	} {
		t.Run(name, func(t *testing.T) {
			hits, omitted := best(all, tc.wanted)
			var got []string
			for _, one := range hits {
				got = append(got, one.Of+" "+one.Name)
			}
			if !slices.Equal(got, tc.want) || omitted != 0 {
				t.Errorf("got %q and %d more, want %q", got, omitted, tc.want)
			}
		})
	}
	var many []Hit
	for n := range mostHits + 7 {
		many = append(many, Hit{Of: hitObject, Name: fmt.Sprint("x", n)})
	}
	if hits, omitted := best(many, "x"); len(hits) != mostHits || omitted != 7 {
		t.Errorf("%d hits and %d more", len(hits), omitted)
	}
}
