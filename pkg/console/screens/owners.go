package screens

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Owners holds the field managers of an object of a revision, the object in the cluster, and the
// events about it.
type Owners struct {
	Asked string `json:"asked"`
	// Target is the other cluster that contains the object; the caller has no credentials there.
	Target string `json:"target,omitempty"`
	// Managers are the field managers of the object, last write first; empty for a missing object.
	Managers []Manager `json:"managers"`
	// Live is the object in the cluster as YAML. If values of a Secret were left out, Hidden is
	// true.
	Live   string `json:"live,omitempty"`
	Hidden bool   `json:"hidden,omitempty"`
	// Events are the newest events about the object. NotShown is the reason why none are shown.
	Events   []Event `json:"events,omitempty"`
	NotShown string  `json:"notShown,omitempty"`
}

// Manager is a field manager of an object: a program or a user that has set fields.
type Manager struct {
	Name string `json:"name"`
	// Operation is Apply or Update. Subresource is the subresource of the write.
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	// Time is the last write that changed a field, in RFC 3339; empty if unknown.
	Time string `json:"time,omitempty"`
	// Fields are fields that the manager owns. Omitted is the number of further fields.
	Fields  []string `json:"fields,omitempty"`
	Omitted int      `json:"omitted,omitempty"`
}

const mostFields = 40

// owners reads the field managers of an object. The revision must list the object.
func (a *API) owners(ctx context.Context, r *http.Request) (any, error) {
	found, refused := a.manifestOf(ctx, r)
	if refused != nil {
		return nil, refused
	}
	revision, err := a.penstock.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, r.PathValue("name"), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := Owners{Asked: time.Now().UTC().Format(time.RFC3339), Managers: []Manager{}}
	if revision.Spec.TargetRef != nil {
		out.Target = revision.Spec.TargetRef.Name
		return out, nil
	}
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(found.Object.Raw, &object); err != nil {
		return nil, fmt.Errorf("reading the manifest of %s: %w", found.Name, err)
	}
	live, err := a.live(ctx, hcov1alpha1.TargetRef{APIVersion: object.APIVersion, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name})
	if err != nil {
		return nil, err
	}
	if live == nil {
		return out, nil
	}
	out.Managers = managersOf(live.GetManagedFields())
	if out.Live, out.Hidden, err = shown(live); err != nil {
		return nil, err
	}
	events, _, err := a.eventsIn(ctx, cmp.Or(object.Namespace, metav1.NamespaceDefault), "involvedObject.uid="+string(live.GetUID()), func(*corev1.ObjectReference) bool { return true })
	if apierrors.IsForbidden(err) {
		out.NotShown, err = err.Error(), nil
	}
	out.Events = newest(events)
	return out, err
}

func managersOf(entries []metav1.ManagedFieldsEntry) []Manager {
	managers := make([]Manager, 0, len(entries))
	for i := range entries {
		entry := &entries[i]
		one := Manager{Name: entry.Manager, Operation: string(entry.Operation), Subresource: entry.Subresource, Time: when(entry.Time)}
		set := fieldpath.Set{}
		if entry.FieldsV1 != nil && set.FromJSON(strings.NewReader(entry.FieldsV1.GetRawString())) == nil {
			set.Leaves().Iterate(func(path fieldpath.Path) {
				if len(one.Fields) < mostFields {
					one.Fields = append(one.Fields, path.String())
				} else {
					one.Omitted++
				}
			})
		}
		managers = append(managers, one)
	}
	slices.SortStableFunc(managers, func(a, b Manager) int { return strings.Compare(b.Time, a.Time) })
	return managers
}
