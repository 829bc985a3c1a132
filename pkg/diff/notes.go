package diff

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// The reasons of notes.
const (
	// ReasonDeleted: the object will be deleted, and what goes with it.
	ReasonDeleted = "Deleted"
	// ReasonImmutable: the API server will refuse the change.
	ReasonImmutable = "Immutable"
	// ReasonAPIVersion: the manifest is written in another API version.
	ReasonAPIVersion = "APIVersion"

	// ReasonImage: a container gets another image, comes or goes.
	ReasonImage = "Image"
	// ReasonRestart: pods are replaced.
	ReasonRestart = "Restart"
	// ReasonPrivilege: pods may do more on their node.
	ReasonPrivilege = "Privilege"

	// ReasonRightsGained and ReasonRightsLost: rules of a role.
	ReasonRightsGained = "RightsGained"
	ReasonRightsLost   = "RightsLost"
	// ReasonSubjectsGained and ReasonSubjectsLost: who is bound to a role.
	ReasonSubjectsGained = "SubjectsGained"
	ReasonSubjectsLost   = "SubjectsLost"

	// ReasonVersionLost: a version of a CustomResourceDefinition is no longer
	// served, or is removed.
	ReasonVersionLost = "VersionLost"
	// ReasonStorageVersion: another version is stored.
	ReasonStorageVersion = "StorageVersion"
	// ReasonFieldRemoved: a schema no longer has a field; it is dropped.
	ReasonFieldRemoved = "FieldRemoved"
	// ReasonNarrowed: a schema refuses what it accepted.
	ReasonNarrowed = "Narrowed"

	// ReasonWebhook: a webhook sees more requests, or fails them.
	ReasonWebhook = "Webhook"
)

// words collects the notes of one change.
type words struct {
	change Change
	delta  delta
	// old and new are nil where the object does not exist.
	old, new *node
	// before and after are the rights that all objects give, nil when only one
	// object is known.
	before, after *powers
	stop          func() bool
	notes         []Note
}

// notesOf says in words what matters of a change.
func (c *comparison) notesOf(change Change, d delta) []Note {
	w := &words{change: change, delta: d, old: d.old, new: d.new, before: c.before, after: c.after, stop: c.stop}
	w.deletion()
	w.apiVersion()
	w.immutable()
	switch id := change.ID; {
	case templatePath(id) != nil:
		w.workload(templatePath(id))
	case id.Group == rbacGroup && (id.Kind == "Role" || id.Kind == "ClusterRole"):
		w.role()
	case id.Group == rbacGroup && (id.Kind == "RoleBinding" || id.Kind == "ClusterRoleBinding"):
		w.binding()
	case id.IsDefinition():
		w.definition()
	case id.Group == "admissionregistration.k8s.io" && strings.HasSuffix(id.Kind, "WebhookConfiguration"):
		w.webhooks()
	}
	return w.notes
}

// phrase is text that is put together of parts that are printable.
type phrase string

// add adds a note. Arguments that are strings come from manifests: they are made
// short and printable.
func (w *words) add(severity Severity, reason, format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = text(s)
		}
	}
	w.notes = append(w.notes, Note{Severity: severity, Reason: reason, ID: w.change.ID, Message: fmt.Sprintf(format, args...)})
}

// some names the first of many things.
func some(things []string) phrase {
	const most = 12
	var shown []string
	for _, thing := range things[:min(len(things), most)] {
		shown = append(shown, text(thing))
	}
	if over := len(things) - most; over > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", over))
	}
	return phrase(strings.Join(shown, ", "))
}

// changed tells whether a field differs, or one below it.
func (at delta) changed(names ...string) bool {
	for _, name := range names {
		if at.op != deltaInside {
			return at.op != deltaSame
		}
		found := false
		for _, c := range at.children {
			if c.name == name {
				at, found = c.delta, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return at.op != deltaSame
}

func (w *words) deletion() {
	if w.change.Kind != Removed {
		return
	}
	severity, what := Warning, "will be deleted"
	switch w.change.ID.GroupKind().String() {
	case "Namespace":
		severity, what = Critical, "will be deleted, and everything in it"
	case "CustomResourceDefinition.apiextensions.k8s.io":
		severity, what = Critical, "will be deleted, and every object of its kind in the cluster"
	case "PersistentVolumeClaim":
		severity, what = Critical, "will be deleted, and its data, if the reclaim policy of its volume is Delete"
	case "StatefulSet.apps":
		what = "will be deleted; the claims it made stay, if persistentVolumeClaimRetentionPolicy does not say otherwise"
	case "APIService.apiregistration.k8s.io":
		what = "will be deleted: the API it registers is no longer served"
	case "Role." + rbacGroup, "ClusterRole." + rbacGroup, "RoleBinding." + rbacGroup, "ClusterRoleBinding." + rbacGroup:
		// What that takes away, the notes on rights say.
		severity = Info
	}
	w.add(severity, ReasonDeleted, "%s", phrase(what))
}

func (w *words) apiVersion() {
	if w.change.Kind == Changed && w.change.OldVersion != w.change.NewVersion {
		w.add(Info, ReasonAPIVersion, "written in version %s, was %s", w.change.NewVersion, w.change.OldVersion)
	}
}

// templatePath leads from a workload to its pod template; nil for what is none.
func templatePath(id manifest.ID) []string {
	switch id.GroupKind().String() {
	case "Pod":
		return []string{}
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps", "Job.batch", "ReplicationController":
		return []string{"spec", "template"}
	case "CronJob.batch":
		return []string{"spec", "jobTemplate", "spec", "template"}
	}
	return nil
}
