package probe

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/text"
)

// progressDeadlineExceeded is the reason with which the Deployment controller
// gives up hope, though not its work.
const progressDeadlineExceeded = "ProgressDeadlineExceeded"

// counts are the pods of a workload.
type counts struct {
	wanted    int64
	total     int64
	updated   int64
	available int64
	// unit is the counted thing.
	unit string
}

// missing says what is left to do, or nothing. It is what `kubectl rollout
// status` waits for, all of it at once.
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

// deployment is ready when every wanted replica is of the newest template and
// available, and no other one is left.
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

// statefulSet is ready when every wanted replica is available and, unless pods
// are replaced by hand only (OnDelete), those above the partition are of the
// newest template. Nothing is said of old replicas: below the partition they are
// meant to stay.
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

// onDelete is the update strategy that leaves old pods until someone deletes
// them: waiting for updated ones would be waiting for a person.
const onDelete = "OnDelete"

// daemonSet is ready when every node that should run the pod has it available
// and of the newest template. None of them, where no node is selected, is ready.
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
