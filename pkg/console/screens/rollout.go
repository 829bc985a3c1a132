package screens

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/follow"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/pkg/text"
)

// SetRow is one ClusterExtensionSet on the overview.
type SetRow struct {
	Name   string `json:"name"`
	Signal Signal `json:"signal"`
	// State is the phase of the newest rollout, or the reason why there is none.
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	// Rollout is the newest rollout; empty without one.
	Rollout string `json:"rollout,omitempty"`
	// Updated is the number of clusters with the last approved content, out of Clusters.
	Updated  int `json:"updated"`
	Clusters int `json:"clusters"`
}

// Rollout is one change to many clusters, without the diffs of its groups.
type Rollout struct {
	Name string `json:"name"`
	Set  string `json:"set"`
	// RequestedBy is the user who wrote the set.
	RequestedBy string `json:"requestedBy"`
	Created     string `json:"created"`
	Signal      Signal `json:"signal"`
	State       string `json:"state"`
	// Message names the users or clusters for which the rollout waits.
	Message string `json:"message,omitempty"`
	// Digest is the digest of the rollout or of Wave that an approval must name now. It is empty if
	// no approval is needed.
	Digest string `json:"digest,omitempty"`
	Wave   string `json:"wave,omitempty"`
	// Troubles is the digest that resume, retry and skip need.
	Troubles string `json:"troubles"`
	HaltedBy string `json:"haltedBy,omitempty"`
	// Leaving are clusters that the set no longer selects and that wait for a user's decision.
	Leaving []string `json:"leaving,omitempty"`
	// Ended is true after another rollout replaced this rollout.
	Ended     bool                       `json:"ended,omitempty"`
	Approvals []v1alpha1.RolloutApproval `json:"approvals,omitempty"`
	Decisions []v1alpha1.RolloutDecision `json:"decisions,omitempty"`
	Waves     []v1alpha1.RolloutWave     `json:"waves"`
	Clusters  []RolloutCluster           `json:"clusters"`
}

// RolloutCluster is one cluster of a rollout.
type RolloutCluster struct {
	Name   string `json:"name"`
	Wave   string `json:"wave"`
	Signal Signal `json:"signal"`
	State  string `json:"state"`
	Since  string `json:"since,omitempty"`
	// Attempt counts the attempts to roll out the change.
	Attempt int64  `json:"attempt,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// By is the user who skipped or retried the cluster last.
	By string `json:"by,omitempty"`
	// Extension is the cluster's extension; empty until it exists.
	Extension string `json:"extension,omitempty"`
	// Retry and Skip report whether the user can retry or skip the cluster now.
	Retry bool `json:"retry,omitempty"`
	Skip  bool `json:"skip,omitempty"`
}

// RolloutGroups holds the changes of a rollout, largest group first.
type RolloutGroups struct {
	Groups []RolloutGroup `json:"groups"`
}

// RolloutGroup is the change of some clusters, which is the same for each cluster.
type RolloutGroup struct {
	Clusters []string `json:"clusters"`
	// From is the previous version; empty for an installation.
	From string                 `json:"from,omitempty"`
	To   string                 `json:"to"`
	Diff *v1alpha1.RevisionDiff `json:"diff,omitempty"`
}

// DecideRequest is a decision about a rollout that was on the screen.
type DecideRequest struct {
	// Digest is the digest of the rollout or wave for an approval; for other decisions it is
	// Rollout.Troubles.
	Digest string `json:"digest"`
	// Clusters are the clusters to retry or skip.
	Clusters []string `json:"clusters,omitempty"`
	Comment  string   `json:"comment,omitempty"`
	DryRun   bool     `json:"dryRun,omitempty"`
}

func (a *API) watchRollout(ctx context.Context, r *http.Request, send func(Message)) error {
	selected := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, r.PathValue("name")).String()}
	return one(ctx, follow.Rollouts(a.penstock, selected), send, func(all []*v1alpha1.ClusterExtensionRollout) Message {
		if len(all) == 0 {
			return Message{Kind: "rollout"}
		}
		return Message{Kind: "rollout", Rollout: rolloutOf(all[0])}
	})
}

func rolloutOf(rollout *v1alpha1.ClusterExtensionRollout) *Rollout {
	spec, status := &rollout.Spec, &rollout.Status
	out := &Rollout{
		Name: rollout.Name, Set: spec.Set.Name, RequestedBy: spec.RequestedBy, Created: when(&rollout.CreationTimestamp),
		Signal: fleetSignal(status.Phase, status.Conditions), State: cmp.Or(status.Phase, string(fleet.Pending)), Message: status.Message,
		Digest: status.Digest, Wave: status.Wave, Troubles: status.Troubles, HaltedBy: status.HaltedBy, Leaving: status.Leaving, Ended: status.Ended,
		Approvals: status.Approvals, Decisions: status.Decisions, Waves: spec.Waves, Clusters: make([]RolloutCluster, len(spec.Clusters)),
	}
	at := make(map[string]*v1alpha1.RolloutClusterStatus, len(status.Clusters))
	for i := range status.Clusters {
		at[status.Clusters[i].Name] = &status.Clusters[i]
	}
	for i, target := range spec.Clusters {
		cluster := RolloutCluster{Name: target.Name, Wave: target.Wave, State: string(fleet.Pending)}
		if is := at[target.Name]; is != nil {
			since := metav1.NewTime(is.Since.Time)
			cluster.State, cluster.Since, cluster.Attempt, cluster.Reason, cluster.By = is.State, when(&since), is.Attempt, is.Reason, is.By
		}
		if target.Before != "" || cluster.Attempt > 0 {
			cluster.Extension = extensionset.ChildName(spec.Set.Name, target.Name)
		}
		state := fleet.State(cluster.State)
		cluster.Signal = clusterSignal(state)
		cluster.Retry, cluster.Skip = !status.Ended && handles(state, fleet.EventRetry), !status.Ended && handles(state, fleet.EventSkip)
		out.Clusters[i] = cluster
	}
	return out
}

func handles(state fleet.State, event fleet.Event) bool {
	_, err := fleet.Next(state, event)
	return err == nil
}

func clusterSignal(state fleet.State) Signal {
	switch state {
	case fleet.Succeeded, fleet.Present:
		return Healthy
	case fleet.Updating, fleet.Soaking:
		return InProgress
	case fleet.Failed, fleet.RolledBack, fleet.Unknown:
		return NeedsAttention
	default:
		return Stopped
	}
}

// fleetSignal returns the signal of a set or its rollout, by its phase and conditions.
func fleetSignal(phase string, conditions []metav1.Condition) Signal {
	switch is := func(condition string) bool { return meta.IsStatusConditionTrue(conditions, condition) }; {
	case phase == string(fleet.ReviewRequired):
		return Review
	case is("Stalled"):
		return NeedsAttention
	case is("Progressing"), len(conditions) == 0:
		return InProgress
	case is("Ready"):
		return Healthy
	default:
		return Stopped
	}
}

func setRow(set *extensionset.Set) SetRow {
	status := &set.Status
	row := SetRow{Name: set.Name, State: cmp.Or(status.Phase, string(fleet.Pending)), Rollout: status.Rollout, Updated: int(status.Updated), Clusters: int(status.Clusters)}
	if ready := meta.FindStatusCondition(status.Conditions, "Ready"); ready != nil {
		row.State = ready.Reason
		if row.State != string(fleet.ReviewRequired) { // the message explains how to approve with kubectl
			row.Message = text.Line(ready.Message, maxRowMessage)
		}
	}
	row.Signal = fleetSignal(row.State, status.Conditions)
	if row.Signal == Stopped && len(status.Exceptions) > 0 {
		row.Signal = NeedsAttention
	}
	return row
}

// sets follows ClusterExtensionSets. A cluster might not have the kind.
func (a *API) sets() follow.Source[*unstructured.Unstructured] {
	return ofHost(a.host.Resource(extensionset.Resource))
}

func (a *API) rolloutGroups(ctx context.Context, r *http.Request) (any, error) {
	rollout, err := a.penstock.OlmV1alpha1().ClusterExtensionRollouts().Get(ctx, r.PathValue("name"), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	out := RolloutGroups{Groups: make([]RolloutGroup, len(rollout.Spec.Groups))}
	for i, group := range rollout.Spec.Groups {
		out.Groups[i] = RolloutGroup{Clusters: group.Clusters, From: group.From, To: group.To}
		if group.Diff == nil {
			continue
		}
		if err := json.Unmarshal(group.Diff.Raw, &out.Groups[i].Diff); err != nil {
			return nil, fmt.Errorf("reading the diff of rollout %s: %w", rollout.Name, err)
		}
	}
	return out, nil
}

func (a *API) decide(verb string) http.Handler {
	return a.write(func(ctx context.Context, r *http.Request) (any, error) {
		asked, err := read[DecideRequest](r)
		if err != nil {
			return nil, err
		}
		if asked.Digest == "" {
			return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: "digest is required: it says which rollout was on the screen"}
		}
		api := a.penstock.OlmV1alpha1().ClusterExtensionRollouts()
		send := map[string]func(context.Context, string, *v1alpha1.RolloutRequest, metav1.CreateOptions) (*v1alpha1.RolloutRequest, error){
			"approve": api.Approve, "halt": api.Halt, "resume": api.Resume, "retry": api.Retry, "skip": api.Skip,
		}[verb]
		request := &v1alpha1.RolloutRequest{Spec: v1alpha1.RolloutRequestSpec{Digest: asked.Digest, Clusters: asked.Clusters, Comment: asked.Comment}}
		return send(ctx, r.PathValue("name"), request, metav1.CreateOptions{DryRun: dryRun(asked.DryRun)})
	})
}
