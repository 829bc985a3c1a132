package probe

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

// progressDeadlineExceeded is the reason of a Deployment that missed its deadline. Its controller
// continues to work on it.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

type counts struct {
	wanted    int64
	total     int64
	updated   int64
	available int64
	// unit is the noun for the counted pods.
	unit string
}

// missing describes the remaining work, or returns "". It covers all that `kubectl rollout status`
// waits for.
func (c counts) missing() string {
	var parts []string
	if c.updated < c.wanted {
		parts = append(parts, fmt.Sprintf("%d of %s updated", c.updated, text.Count(c.wanted, c.unit)))
	}
	if c.available < c.wanted {
		parts = append(parts, fmt.Sprintf("%d of %s available", c.available, text.Count(c.wanted, c.unit)))
	}
	switch {
	case c.total > c.updated:
		parts = append(parts, text.Count(c.total-c.updated, "old "+c.unit)+" not yet gone")
	case c.total > c.wanted:
		parts = append(parts, text.Count(c.total-c.wanted, "surplus "+c.unit)+" not yet gone")
	}
	return strings.Join(parts, ", ")
}

// deployment is ready when every wanted replica has the newest template and is available, and no
// other replica exists.
func deployment(v *view) Verdict {
	if stale := v.stale(); stale != "" {
		return unknown("%s", stale)
	}
	missing := counts{
		wanted:    v.number(1, "spec", "replicas"),
		total:     v.number(0, "status", "replicas"),
		updated:   v.number(0, "status", "updatedReplicas"),
		available: v.number(0, "status", "availableReplicas"),
		unit:      "replica",
	}.missing()
	paused := v.flag("spec", "paused")
	conditions := v.conditions()
	progressing, _ := find(conditions, "Progressing")
	overdue := progressing.status == "False" && progressing.reason == progressDeadlineExceeded

	if missing == "" && !overdue {
		return pass()
	}
	var held string
	if paused {
		held = "the rollout is paused (spec.paused)"
	}
	return failing("%s", sentence(missing, held,
		explain(conditions, map[string]string{"Progressing": "False", "ReplicaFailure": "True"})))
}

// statefulSet is ready when every wanted replica is available, and the replicas above the partition
// have the newest template. With OnDelete, the template is ignored. Old replicas below the
// partition are intended, so they are not reported.
func statefulSet(v *view) Verdict {
	if stale := v.stale(); stale != "" {
		return unknown("%s", stale)
	}
	wanted := v.number(1, "spec", "replicas")
	partition := v.number(0, "spec", "updateStrategy", "rollingUpdate", "partition")
	available := v.number(0, "status", "availableReplicas")
	total := v.number(0, "status", "replicas")

	var parts []string
	if v.text("spec", "updateStrategy", "type") != onDelete {
		toUpdate := max(wanted-partition, 0)
		if updated := v.number(0, "status", "updatedReplicas"); updated < toUpdate {
			parts = append(parts, fmt.Sprintf("%d of %s updated", updated, text.Count(toUpdate, "replica")))
		}
	}
	if available < wanted {
		parts = append(parts, fmt.Sprintf("%d of %s available", available, text.Count(wanted, "replica")))
	}
	if total > wanted {
		parts = append(parts, text.Count(total-wanted, "surplus replica")+" not yet gone")
	}
	if parts == nil {
		return pass()
	}
	return failing("%s", strings.Join(parts, ", "))
}

// onDelete is the update strategy that keeps old pods until a user deletes them. Waiting for
// updated pods would be waiting for a user.
const onDelete = "OnDelete"

// daemonSet is ready when every selected node has an available pod of the newest template. It is
// also ready when no node is selected.
func daemonSet(v *view) Verdict {
	if stale := v.stale(); stale != "" {
		return unknown("%s", stale)
	}
	c := counts{
		wanted:    v.number(0, "status", "desiredNumberScheduled"),
		updated:   v.number(0, "status", "updatedNumberScheduled"),
		available: v.number(0, "status", "numberAvailable"),
		unit:      "pod",
	}
	if v.text("spec", "updateStrategy", "type") == onDelete {
		c.updated = c.wanted
	}
	if missing := c.missing(); missing != "" {
		return failing("%s", missing)
	}
	return pass()
}
