package helmapplier

import (
	"errors"
	"strings"
	"testing"
)

// TestChoose lists which revision of each release is taken over.
func TestChoose(t *testing.T) {
	broken := errors.New("a part of it is missing")
	for name, tc := range map[string]struct {
		reason string
		// all are the statuses, newest first. "!" marks an unreadable revision, and "~" one that
		// was taken over.
		all    []string
		chosen int
		says   string
	}{
		"none":                      {reason: "there was no release"},
		"deployed":                  {all: []string{"deployed", "superseded"}, chosen: 2},
		"failed upgrade":            {reason: "what it changed is brought back", all: []string{"failed", "deployed"}, chosen: 1},
		"failed upgrades":           {all: []string{"failed", "failed", "deployed", "superseded"}, chosen: 2},
		"interrupted upgrade":       {all: []string{"pending-upgrade", "deployed"}, chosen: 1},
		"interrupted rollback":      {all: []string{"pending-rollback", "deployed"}, chosen: 1},
		"two deployed":              {reason: "a crash between the two writes: the newer one counts", all: []string{"deployed", "deployed"}, chosen: 2},
		"failed install":            {reason: "some of its objects are there", all: []string{"failed"}, chosen: 1},
		"interrupted install":       {all: []string{"pending-install"}, chosen: 1},
		"superseded alone":          {reason: "the revision after it is lost", all: []string{"superseded", "superseded"}, chosen: 2},
		"interrupted when complete": {reason: "a crash after the one before was superseded", all: []string{"pending-upgrade", "superseded"}, chosen: 2},
		"uninstalling":              {all: []string{"uninstalling"}, says: "revision 1 of its Helm release is uninstalling"},
		"uninstalled":               {all: []string{"uninstalled", "superseded"}, says: "revision 2 of its Helm release is uninstalled"},
		"deployed, with a hole":     {reason: "it is not absent", all: []string{"deployed!", "superseded"}, says: "revision 2 of its Helm release (deployed) cannot be read: a part of it is missing"},
		"failed, with a hole":       {reason: "nobody needs it", all: []string{"failed!", "deployed"}, chosen: 1},
		"old, with a hole":          {all: []string{"deployed", "superseded!"}, chosen: 2},
		"install, with a hole":      {reason: "it wrote no object before its last Secret", all: []string{"pending-install!"}},
		"upgrade, with a hole":      {all: []string{"pending-upgrade!", "superseded"}, chosen: 1},
		"taken over":                {reason: "what it says was there once", all: []string{"deployed~", "superseded~"}},
		"again":                     {reason: "another trip after that", all: []string{"deployed", "superseded~"}, chosen: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var all []Revision
			for i, status := range tc.all {
				one := Revision{Version: len(tc.all) - i, Status: strings.TrimRight(status, "!~"), TakenOver: strings.HasSuffix(status, "~")}
				if strings.HasSuffix(status, "!") {
					one.Err = broken
				}
				all = append(all, one)
			}
			chosen, blocked := Choose(all)
			got, said := 0, ""
			if chosen != nil {
				got = chosen.Version
			}
			if blocked != nil {
				said = blocked.Message
			}
			if got != tc.chosen || !strings.HasPrefix(said, tc.says) || (said == "") != (tc.says == "") {
				t.Errorf("%s: revision %d is chosen, want %d; said is %q, want %q", tc.reason, got, tc.chosen, said, tc.says)
			}
		})
	}
}
