package screens

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/client/workloads"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/text"
)

// Search holds the objects whose names match a text, best first.
type Search struct {
	Hits []Hit `json:"hits"`
	// Omitted is the number of omitted hits.
	Omitted int `json:"omitted,omitempty"`
	// Refused lists the parts that were not searched, with reasons.
	Refused []string `json:"refused,omitempty"`
}

// Hit is an extension, a revision, a package, or an object of the newest revision of an extension.
type Hit struct {
	// Of is Extension, Revision, Package or Object.
	Of   string `json:"of"`
	Name string `json:"name"`
	// Version is the version of an extension or a revision, or the highest version of a package.
	Version string `json:"version,omitempty"`
	// Revision, APIVersion, Kind and Namespace are set for an object.
	Revision   string `json:"revision,omitempty"`
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Namespace  string `json:"namespace,omitempty"`
}

// The kinds of hits, in the order of equally good hits.
const (
	hitExtension = "Extension"
	hitRevision  = "Revision"
	hitPackage   = "Package"
	hitObject    = "Object"
)

const (
	mostHits = 50
	// asMetadata is the Accept header for lists of metadata without specs.
	asMetadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	mostSearch = 128
)

func (a *API) search(ctx context.Context, r *http.Request) (any, error) {
	wanted := strings.ToLower(strings.TrimSpace(r.URL.Query().Get("q")))
	if wanted == "" || len(wanted) > mostSearch {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Query", Message: fmt.Sprintf("q has %d bytes, and must have from 1 to %d", len(wanted), mostSearch)}
	}
	var revisions *olmv1alpha1.ClusterExtensionRevisionList
	var packages *catalogv1alpha1.CatalogPackageList
	// Most revisions are archived. Metadata is enough for them.
	var asking, archived metav1.PartialObjectMetadataList
	var failed [4]error
	var all sync.WaitGroup
	all.Go(func() {
		revisions, failed[0] = a.penstock.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{FieldSelector: olmv1alpha1.LifecycleStateField + "!=" + string(olmv1alpha1.LifecycleStateArchived)})
	})
	all.Go(func() {
		kind := olmv1alpha1.SchemeGroupVersion
		request := a.core().Get().AbsPath("/apis", kind.Group, kind.Version, "clusterextensionrevisions").Param("fieldSelector", olmv1alpha1.LifecycleStateField+"="+string(olmv1alpha1.LifecycleStateArchived))
		// The list of unarchived revisions reports the same refusal.
		if err := workloads.Get(ctx, request, asMetadata, &archived); !apierrors.IsForbidden(err) {
			failed[3] = err
		}
	})
	all.Go(func() {
		packages, failed[1] = a.penstock.CatalogV1alpha1().CatalogPackages().List(ctx, metav1.ListOptions{})
	})
	all.Go(func() {
		kind := extension.Resource
		request := a.core().Get().AbsPath("/apis", kind.Group, kind.Version, kind.Resource)
		// A cluster might not have the kind.
		if err := workloads.Get(ctx, request, asMetadata, &asking); !apierrors.IsNotFound(err) {
			failed[2] = err
		}
	})
	all.Wait()
	out := Search{}
	for _, err := range failed {
		if apierrors.IsForbidden(err) {
			out.Refused = append(out.Refused, err.Error())
		} else if err != nil {
			return nil, err
		}
	}
	var hits []Hit
	if failed[0] == nil {
		hits = hitsOf(append(revisions.Items, archivedOf(archived.Items)...))
	}
	known := map[string]bool{}
	for _, one := range hits {
		known[one.Of+one.Name] = true
	}
	// A new ClusterExtension may have no revision yet.
	for i := range asking.Items {
		if name := asking.Items[i].Name; !known[hitExtension+name] {
			hits = append(hits, Hit{Of: hitExtension, Name: name})
		}
	}
	if failed[1] == nil {
		for i := range packages.Items {
			one := &packages.Items[i]
			if len(validation.IsDNS1123Subdomain(one.Name)) == 0 { // only valid names have a screen
				hits = append(hits, Hit{Of: hitPackage, Name: one.Name, Version: one.Latest})
			}
		}
	}
	out.Hits, out.Omitted = best(hits, wanted)
	return out, nil
}

func archivedOf(items []metav1.PartialObjectMetadata) []olmv1alpha1.ClusterExtensionRevision {
	var revisions []olmv1alpha1.ClusterExtensionRevision
	for i := range items {
		if _, number, ok := olm.ChainOf(items[i].Name); ok {
			revisions = append(revisions, olmv1alpha1.ClusterExtensionRevision{ObjectMeta: items[i].ObjectMeta, Spec: olmv1alpha1.ClusterExtensionRevisionSpec{Revision: number}})
		}
	}
	return revisions
}

// hitsOf returns the hits in revisions. Only the newest revision of an extension adds its objects.
func hitsOf(revisions []olmv1alpha1.ClusterExtensionRevision) []Hit {
	var all []Hit
	pointers := make([]*olmv1alpha1.ClusterExtensionRevision, len(revisions))
	for i := range revisions {
		pointers[i] = &revisions[i]
	}
	for _, one := range overview.Of(pointers) {
		newest := one.Newest()
		all = append(all, Hit{Of: hitExtension, Name: one.Name, Version: overview.Version(newest)})
		for _, revision := range one.Revisions {
			all = append(all, Hit{Of: hitRevision, Name: revision.Name, Version: overview.Version(revision)})
		}
		for _, phase := range newest.Spec.Phases {
			for _, object := range phase.Objects {
				all = append(all, Hit{Of: hitObject, Name: object.Name, Revision: newest.Name, APIVersion: object.APIVersion, Kind: object.Kind, Namespace: object.Namespace})
			}
		}
	}
	return all
}

// best returns the hits that contain all words of a text, and the number of omitted hits. Names
// that equal the text come first, then names that begin with it.
func best(all []Hit, wanted string) (hits []Hit, omitted int) {
	type ranked struct {
		Hit
		rank int
	}
	order := []string{hitExtension, hitRevision, hitPackage, hitObject}
	words := strings.Fields(wanted)
	var found []ranked
	for _, one := range all {
		name := strings.ToLower(one.Name)
		said := strings.ToLower(strings.Join([]string{one.Kind, one.Namespace + "/" + one.Name, one.Version}, " "))
		if slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(said, word) }) {
			continue
		}
		rank := slices.Index(order, one.Of)
		switch {
		case name == wanted:
		case strings.HasPrefix(name, wanted):
			rank += len(order)
		case strings.Contains(name, wanted):
			rank += 2 * len(order)
		default:
			rank += 3 * len(order)
		}
		found = append(found, ranked{one, rank})
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	omitted = max(0, len(found)-mostHits)
	hits = []Hit{}
	for _, one := range found[:len(found)-omitted] {
		one.Version = text.Line(one.Version, maxRowMessage)
		hits = append(hits, one.Hit)
	}
	return hits, omitted
}
