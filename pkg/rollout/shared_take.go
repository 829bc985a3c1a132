package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// writeShared writes a shared object without taking forbidden fields. The expected state has no
// field managers, so a field may belong to a new manager now.
//
//  1. If no field may be taken, the object is applied without force: the server reports conflicts.
//  2. If fields may be taken, force is needed. The managedFields that were read say from whom the
//     apply would take fields. If they name a new manager, a dry-run decides, because the server
//     may treat different spellings of a value as equal.
//
// If the object has no managedFields, no manager can lose a field.
func (o *object) writeShared(ctx context.Context, now Seen, live *unstructured.Unstructured, wanted map[string]any) objectResult {
	options, may := onto(now), o.step.Policy.Takes
	options.Unforced = len(may) == 0 && len(live.GetManagedFields()) > 0
	if !options.Unforced && len(Beyond(managedfields.WouldTake(wanted, live, o.who.Manager), may)) > 0 {
		found, err := o.wouldTake(ctx, live)
		if err != nil {
			return objectResult{seen: now, err: err}
		}
		if more := Beyond(found, may); len(more) > 0 {
			return o.refuse(now, ReasonStale, true, "changed since it was reviewed; "+strings.Join(more, ", "))
		}
	}
	result := o.apply(ctx, now, options, nil, o.event("Configured", "configured %s", o.step.ID))
	if theirs := conflictsIn(result.err); len(theirs) > 0 {
		return o.refuse(now, ReasonStale, true, "changed since it was reviewed; "+strings.Join(theirs, ", "))
	}
	return result
}

// TakesMore returns the fields, except those in may, that an apply of wanted would take from other
// managers. It does not ask the server, so it may include fields whose values are spelled
// differently but are equal for the server. us is our field manager.
func TakesMore(wanted map[string]any, live *unstructured.Unstructured, us string, may []stage.Take) []string {
	return Beyond(managedfields.WouldTake(wanted, live, us), may)
}

// wouldTake returns the fields that an apply would take from other managers, according to a
// dry-run.
func (o *object) wouldTake(ctx context.Context, live *unstructured.Unstructured) ([]managedfields.Taken, error) {
	if o.engine.Trier == nil {
		return nil, errors.New("an engine that takes fields of other managers needs a Trier")
	}
	body, err := o.manifests.Without(ctx, o.step, nil)
	if err != nil {
		return nil, err
	}
	tried, err := o.engine.Trier.Try(ctx, o.step.Ref, body, targetclient.TryOptions{
		FieldManager: o.who.Manager, Precondition: targetclient.Precondition{UID: live.GetUID(), ResourceVersion: live.GetResourceVersion()},
	})
	if err != nil {
		return nil, err
	}
	return managedfields.TakenBetween(live.GetManagedFields(), tried.GetManagedFields(), o.who.Manager), nil
}

// Beyond returns the found fields that are not in may.
func Beyond(found []managedfields.Taken, may []stage.Take) []string {
	known := map[string][]string{}
	for _, one := range may {
		known[one.Manager] = append(known[one.Manager], one.Fields...)
	}
	var more []string
	for _, one := range found {
		fields := known[one.Manager]
		if len(fields) >= managedfields.MostPaths {
			continue // may does not list all of them: the user who agreed knew that there are many
		}
		for _, path := range one.Paths {
			if !slices.Contains(fields, path) {
				more = append(more, fmt.Sprintf("%s has %s by now", one.Manager, path))
			}
		}
	}
	return more
}

// conflictsIn returns the fields of a conflict between field managers; none for any other error.
func conflictsIn(err error) []string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Details == nil {
		return nil
	}
	var theirs []string
	for _, cause := range answer.Status().Details.Causes {
		if cause.Type == metav1.CauseTypeFieldManagerConflict {
			theirs = append(theirs, fmt.Sprintf("%s: %s", cause.Field, cause.Message))
		}
	}
	return theirs
}
