package plan

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
)

// judgement is a target as it was compared with what was reviewed.
type judgement struct {
	presence   observe.Presence
	uid        string
	generation int64
	version    string
	// stale is why it is not what was reviewed; empty when it is.
	stale string
}

// review waits for the approval of this very plan:
//
//  1. what it was computed from must be what spec says,
//  2. a standing approval is for the first plan,
//  3. an approved plan is executed,
//  4. one that waits too long expires,
//  5. and whether the targets are still as they are shown is told.
func (v *visit) review(ctx context.Context) error {
	status := &v.plan.Status
	if status.InputsHash != governance.InputsHash(v.plan.Spec) {
		return v.move(governance.EventDraft, "", "")
	}
	if facts, err := v.World.Facts(); err == nil {
		if missing := v.missing(facts); missing != nil && v.plan.Spec.RestoreRun == 0 {
			return v.move(governance.EventMissing, governance.ReasonMissingDependency, missing.Error())
		}
	}
	if approval := status.Approval; approval != nil && approval.Mode == v1alpha1.ApprovalStanding && approval.PlanHash == "" && approval.Run == 0 {
		approval.PlanHash = status.PlanHash
	}
	executable, message := governance.Executable(v.plan.Spec, status.PlanHash, status.Approval)
	if executable {
		return v.begin(ctx)
	}
	if left := v.expiry().Sub(v.Clock.Now()); left <= 0 {
		return v.move(governance.EventExpired, "", fmt.Sprintf("nobody approved it within %s; POST to the subresource retry computes it anew", v.plan.Spec.ExpiresAfter.Duration))
	} else {
		v.soon(left)
	}
	status.Message = clip(message)
	return v.compare(ctx)
}

func (v *visit) expiry() time.Time {
	drafted, after := v.plan.Status.DraftedAt, v.plan.Spec.ExpiresAfter
	if drafted == nil || after == nil {
		return v.Clock.Now().Add(24 * time.Hour)
	}
	return drafted.Add(after.Duration)
}

// compare tells when a target is not as it is shown any more. It costs a read when
// a target has changed, and nothing otherwise.
func (v *visit) compare(ctx context.Context) error {
	v.restart("review/" + v.plan.Status.PlanHash)
	owner := string(v.plan.Spec.Profile)
	if v.judged == nil {
		v.judged = map[string]judgement{}
		var interests []observe.Interest
		for _, item := range v.plan.Status.Items {
			ref := refOf(item)
			interests = append(interests, observe.Interest{ID: ref.ID, Version: ref.Version, ByName: true})
		}
		v.Engine.Observer.Want(owner, interests...)
	}
	for i := range v.plan.Status.Items {
		item := &v.plan.Status.Items[i]
		judged, err := v.judge(ctx, *item)
		if err != nil {
			return err
		}
		item.Message = clip(judged.stale)
		if judged.stale != "" {
			v.reason = governance.ReasonPlanStale
			v.plan.Status.Message = clip(fmt.Sprintf("item %s is stale: %s; POST to the subresource retry computes the plan anew", item.Name, judged.stale))
		}
	}
	return nil
}

// judge compares one target, when it has changed since it was compared last.
func (v *visit) judge(ctx context.Context, item v1alpha1.PlanItem) (judgement, error) {
	ref := refOf(item)
	seen, presence := v.Engine.Observer.Get(ref.ID)
	last, known := v.judged[item.Name]
	if presence == observe.Unknown {
		return last, nil
	}
	now := judgement{presence: presence, uid: string(seen.UID), generation: seen.Generation}
	if seen.Generation == 0 {
		now.version = seen.ResourceVersion
	}
	if known && last.presence == now.presence && last.uid == now.uid && last.generation == now.generation && last.version == now.version {
		return last, nil
	}
	live, err := v.Engine.Reader.Read(ctx, ref)
	if apierrors.IsNotFound(err) {
		live, err = nil, nil
	}
	if err != nil {
		return last, err
	}
	now.stale = rollout.Stale(live, item.Fingerprint, v.Engine.Identity(string(v.plan.Spec.Profile)).Manager)
	v.judged[item.Name] = now
	return now, nil
}

// refOf names an item's target and content.
func refOf(item v1alpha1.PlanItem) manifest.Ref {
	group, version := splitAPIVersion(item.TargetRef.APIVersion)
	return manifest.Ref{
		ID:      manifest.ID{Group: group, Kind: item.TargetRef.Kind, Namespace: item.TargetRef.Namespace, Name: item.TargetRef.Name},
		Version: version, Digest: manifest.Digest(item.Digest),
	}
}

// splitAPIVersion is the group and the version of an apiVersion.
func splitAPIVersion(apiVersion string) (group, version string) {
	if group, version, found := strings.Cut(apiVersion, "/"); found {
		return group, version
	}
	return "", apiVersion
}
