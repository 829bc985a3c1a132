package screens

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/overview"
	"github.com/penstock-project/penstock/pkg/client/upgrades"
)

// StateRequest is a request to set the lifecycle state of a revision, as the screen showed it.
type StateRequest struct {
	UID        string `json:"uid"`
	Generation int64  `json:"generation"`
	// State is Active, Paused or Archived.
	State string `json:"state"`
	// Why is the user's reason, shown to the next user; empty removes the previous one.
	Why string `json:"why,omitempty"`
	// RemovedDigest and ApprovalDigest come from the diff that the user read. They are the digests
	// of the acknowledged deletions and of the approved change.
	RemovedDigest  string `json:"removedDigest,omitempty"`
	ApprovalDigest string `json:"approvalDigest,omitempty"`
	// NotBefore approves a proposal for a later time, in RFC 3339. The revision stays Paused until
	// upgrades may begin, and at least until this time.
	NotBefore string `json:"notBefore,omitempty"`
	// DryRun only checks whether the change is possible.
	DryRun bool `json:"dryRun,omitempty"`
}

// RollbackRequest is a request to roll back to the content of an earlier revision.
type RollbackRequest struct {
	// From is the newest revision on the screen. A dry run may omit it.
	From   string `json:"from,omitempty"`
	Cause  string `json:"cause,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
}

// Done is the result of a write of a revision.
type Done struct {
	// Name is the revision that was changed or created.
	Name string `json:"name"`
}

const maxTries = 5

// setState changes a revision. It refuses the change if the object was replaced or its spec has
// changed. A change of status is not a reason to refuse: status changes often during a rollout.
func (a *API) setState(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[StateRequest](r)
	if err != nil {
		return nil, err
	}
	if asked.UID == "" || asked.Generation == 0 || asked.State == "" {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "uid, generation and state are required: they say what was on the screen"}
	}
	name := r.PathValue("name")
	api := a.penstock.OlmV1alpha1().ClusterExtensionRevisions()
	for try := 0; ; try++ {
		now, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		if string(now.UID) != asked.UID || now.Generation != asked.Generation {
			return nil, &Refusal{Status: http.StatusConflict, Reason: ReasonChanged, Message: fmt.Sprintf("%s was changed since it was shown: review it again", name)}
		}
		patch, err := asked.patch(now.ResourceVersion)
		if err != nil {
			return nil, err
		}
		changed, err := api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun(asked.DryRun)})
		if apierrors.IsConflict(err) && try < maxTries {
			continue
		}
		if err != nil {
			return nil, err
		}
		return Done{Name: changed.Name}, nil
	}
}

func (s StateRequest) patch(resourceVersion string) ([]byte, error) {
	annotations := map[string]any{overview.ReasonAnnotation: nil}
	if s.NotBefore != "" {
		annotations = map[string]any{v1alpha1.ApproveNotBeforeAnnotation: s.NotBefore} // the revision stays paused, so its reason stays
	}
	for key, value := range map[string]string{
		overview.ReasonAnnotation: s.Why, v1alpha1.AcknowledgeDeletionAnnotation: s.RemovedDigest, v1alpha1.ApproveAnnotation: s.ApprovalDigest,
	} {
		if value != "" {
			annotations[key] = value
		}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": s.UID, "resourceVersion": resourceVersion, "annotations": annotations},
		"spec":     map[string]any{"lifecycleState": s.State},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the change: %w", err)
	}
	return patch, nil
}

// UpgradeWindow is the time from which upgrades of a ClusterExtension may begin automatically.
type UpgradeWindow struct {
	// Opens is the time when upgrades may begin, in RFC 3339. It is empty if they may begin now, or
	// if the time is unknown.
	Opens string `json:"opens,omitempty"`
	// Said is the reason why they cannot begin now.
	Said string `json:"said,omitempty"`
}

func (a *API) upgradeWindow(ctx context.Context, r *http.Request) (any, error) {
	decision := upgrades.Window(ctx, a.host, r.PathValue("name"))
	if decision == nil || decision.Open || decision.Opens.IsZero() {
		return UpgradeWindow{}, nil
	}
	return UpgradeWindow{Opens: decision.Opens.UTC().Format(time.RFC3339), Said: decision.String()}, nil
}

// rollback rolls back to a revision; a dry run returns the changes.
func (a *API) rollback(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[RollbackRequest](r)
	if err != nil {
		return nil, err
	}
	if asked.From == "" && !asked.DryRun {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "from is required: it says which revision was the newest on the screen"}
	}
	request := &v1alpha1.RevisionRollback{Spec: v1alpha1.RevisionRollbackSpec{From: asked.From, Cause: asked.Cause}}
	return a.penstock.OlmV1alpha1().ClusterExtensionRevisions().Rollback(ctx, r.PathValue("name"), request, metav1.CreateOptions{DryRun: dryRun(asked.DryRun)})
}

func dryRun(only bool) []string {
	if only {
		return []string{metav1.DryRunAll}
	}
	return nil
}
