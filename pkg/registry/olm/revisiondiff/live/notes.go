package live

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/penstock-project/penstock/pkg/diff"
	diffreview "github.com/penstock-project/penstock/pkg/diff/review"
	"github.com/penstock-project/penstock/pkg/note"
	"github.com/penstock-project/penstock/pkg/rollout"
	"github.com/penstock-project/penstock/pkg/rollout/managedfields"
	"github.com/penstock-project/penstock/pkg/rollout/preview"
)

// These are the reasons of notes that only a comparison with the cluster has.
const (
	reasonCollision = "Collision"
	reasonRefused   = "Refused"
	reasonNotServed = "KindNotServed"
	reasonAdopted   = "Adopted"
	reasonConflict  = "Conflict"
	reasonDrift     = "Drift"
	reasonDeferred  = "Deferred"
	reasonReleased  = "Released"
	reasonLeft      = "Left"
	reasonUntried   = "NotTried"
	reasonUnread    = "NotRead"
	reasonInstances = "InstancesGo"
)

// maxPaths bounds the fields that a note names.
const maxPaths = 5

// noteOf returns a note about facts of an object that its change does not show. change is nil if
// the object does not change.
func noteOf(item *preview.Item, change *diff.Change) (diffreview.Note, bool) {
	told := func(severity diffreview.Severity, reason, format string, args ...any) (diffreview.Note, bool) {
		return diffreview.Note{Severity: severity, Reason: reason, Message: fmt.Sprintf(format, args...)}, true
	}
	switch {
	case item.Unread && item.Failure != nil:
		return told(note.Warning, reasonUnread, "the API server fails to read it, so what a rollout would do is not known: %s", item.Failure.Message)
	case item.Failure != nil:
		return refusal(item), true
	case item.Action == rollout.Collision:
		return told(note.Critical, reasonCollision, "%s: a rollout stops here", item.Message)
	case item.Action == rollout.Deferred && !item.Exists:
		return told(note.Info, reasonDeferred, "%s", item.Message)
	case item.Action == rollout.Deferred:
		return told(note.Warning, reasonDeferred, "%s", item.Message)
	case item.Action == preview.Leave:
		return told(note.Warning, reasonLeft, "is no longer in any phase, and stays: it %s", item.Message)
	case item.Action == preview.Release:
		return told(note.Info, reasonReleased, "is no longer in any phase, and stays: it is released")
	case item.Action == preview.Delete && item.IsDefinition():
		return told(note.Warning, reasonInstances, "is deleted only when no object of its kind is left, or with the annotation penstock.dev/allow-crd-deletion")
	case item.Action == rollout.Adopt:
		return told(note.Warning, reasonAdopted, "%s: a rollout takes it over%s", item.Message, takes(item, change))
	case item.Drifted:
		return drift(item, change)
	case item.Action == rollout.Create && !item.Tried:
		return told(note.Info, reasonUntried, "the API server was not asked about it, as you cannot create it")
	case len(item.Taken) > 0:
		return told(note.Warning, reasonConflict, "another field manager has fields of it%s", takes(item, change))
	default:
		return diffreview.Note{}, false
	}
}

// drift returns a note that names the manager who changed rolled-out content.
func drift(item *preview.Item, change *diff.Change) (diffreview.Note, bool) {
	found := diffreview.Note{Severity: note.Warning, Reason: reasonDrift}
	switch {
	case !item.Exists:
		found.Message = "was rolled out, and was deleted since: a rollout creates it again"
	case change == nil || len(change.Fields) == 0:
		found.Severity, found.Message = note.Info, "labels, annotations or managedFields by which Penstock recognizes it were changed: a rollout sets them again"
	default:
		found.Message = "was changed since it was rolled out: " + owners(item, change)
	}
	return found, true
}

// owners names the fields that change, with their current managers.
func owners(item *preview.Item, change *diff.Change) string {
	var parts []string
	for i := range change.Fields {
		if i == maxPaths {
			parts = append(parts, fmt.Sprintf("and %d more", change.FieldCount()-maxPaths))
			break
		}
		field := &change.Fields[i]
		part := field.Path
		switch owner := ownerOf(field.Path, item.Taken); {
		case owner != "":
			part += " by " + owner
		case item.IsSecret():
			// A claim on stringData is not a claim on data: whether the field has no owner is
			// unknown.
		case field.Op == diff.Add:
			part += " was removed"
		default:
			part += ", which no object claims"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// takes names the fields of other managers. It uses the paths of the comparison, which knows the
// hidden fields.
func takes(item *preview.Item, change *diff.Change) string {
	var parts []string
	if change != nil {
		for i := range change.Fields {
			owner := ownerOf(change.Fields[i].Path, item.Taken)
			if owner == "" {
				continue
			}
			if len(parts) == maxPaths {
				parts = append(parts, "and more")
				break
			}
			parts = append(parts, change.Fields[i].Path+" of "+owner)
		}
	}
	if len(parts) == 0 {
		// No taken field changes: only the ownership moves.
		for i := range item.Taken {
			parts = append(parts, fmt.Sprintf("%d of %s", len(item.Taken[i].Paths)+item.Taken[i].More, manager(&item.Taken[i])))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ", and takes " + strings.Join(parts, "; ")
}

// ownerOf returns the manager of a field, of a field within it, or of a field around it.
func ownerOf(path string, taken []managedfields.Taken) string {
	for i := range taken {
		for _, theirs := range taken[i].Paths {
			// A Secret's stringData is owned as stringData, and stored as data.
			if key, ok := strings.CutPrefix(theirs, ".stringData"); ok {
				theirs = ".data" + key
			}
			if within(path, theirs) || within(theirs, path) {
				return manager(&taken[i])
			}
		}
	}
	return ""
}

// within reports whether a path equals another path or is below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func manager(t *managedfields.Taken) string {
	name := printed(t.Manager)
	if t.Subresource != "" {
		name += " through " + printed(t.Subresource)
	}
	return name
}

// printed returns a name from a user in a form that is safe on a terminal.
func printed(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) || name == "" {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// refusal returns the note on the server's refusal of a rollout's write. Package targetclient has
// already removed the parts that the message must not quote.
func refusal(item *preview.Item) diffreview.Note {
	message := item.Failure.Message
	switch {
	case item.Failure.Reason == rollout.ReasonNotServed:
		return diffreview.Note{Severity: note.Warning, Reason: reasonNotServed, Message: message}
	case apierrors.IsNotFound(item.Err):
		return diffreview.Note{Severity: note.Warning, Reason: reasonRefused, Message: "cannot be written as things are now: " + message}
	default:
		return diffreview.Note{Severity: note.Critical, Reason: reasonRefused, Message: "the API server refuses what a rollout would write: " + message}
	}
}
