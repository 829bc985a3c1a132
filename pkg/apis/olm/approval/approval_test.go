package approval

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

var now = time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)

// TestOver: an approval ends some time after its NotBefore, and an approval from the future does
// not count.
func TestOver(t *testing.T) {
	given := &Scheduled{At: now, NotBefore: now.Add(37 * time.Hour)}
	for at, over := range map[time.Time]bool{
		now: false, now.Add(-Skew): false, now.Add(-Skew - time.Second): true, now.AddDate(-1, 0, 0): true,
		given.NotBefore: false, given.NotBefore.Add(Lifetime): false, given.NotBefore.Add(Lifetime + time.Second): true, now.AddDate(4, 0, 0): true,
	} {
		if why := given.Over(at); (why != "") != over {
			t.Errorf("at %s it is over: %q", at, why)
		}
	}
}

func TestNotBefore(t *testing.T) {
	for value, problem := range map[string]string{
		"2026-11-28T23:00:00+01:00": "", "2026-11-27T08:55:00Z": "", "2026-12-28T09:00:00Z": "",
		"2026-11-27T08:54:59Z": "must be between now, 2026-11-27T09:00:00Z, and 2026-12-28T09:00:00Z", "2026-12-28T09:00:01Z": "must be between",
		"WindowOpens": "must be a time such as 2026-11-27T09:00:00Z", "2026-11-28": "must be a time", "": "must be a time",
	} {
		at, err := NotBefore(value, now)
		if problem == "" && (err != nil || at.IsZero()) || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%q: %v, %v, want %q", value, at, err, problem)
		}
	}
}

// TestOf: reading returns the written approval. An approval that ended is not pending, and an
// unreadable annotation approves nothing.
func TestOf(t *testing.T) {
	given := &Scheduled{User: "alice", UID: "1", Groups: []string{"ops"}, Extra: map[string][]string{"scope": {"x"}}, At: now, NotBefore: now.Add(time.Hour), Digest: "d"}
	annotations := func(s *Scheduled) map[string]string {
		value, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{v1alpha1.ScheduledApprovalAnnotation: value}
	}
	read := Pending(annotations(given))
	if read == nil || read.Info().GetName() != "alice" || read.Info().GetUID() != "1" || read.Info().GetGroups()[0] != "ops" || read.Info().GetExtra()["scope"][0] != "x" || !read.NotBefore.Equal(given.NotBefore) || read.Digest != "d" {
		t.Errorf("it is read as %+v", read)
	}
	if Ended(annotations(given)) != nil {
		t.Error("it has ended")
	}
	over := *given
	over.Ended, over.Why = now, "alice cannot"
	if ended := Ended(annotations(&over)); ended == nil || ended.Why != "alice cannot" || Pending(annotations(&over)) != nil {
		t.Errorf("what has ended is %+v, and pending %+v", ended, Pending(annotations(&over)))
	}
	for _, value := range []string{"", "alice", `{"user":`, `{"at":"yesterday"}`} {
		if found := Pending(map[string]string{v1alpha1.ScheduledApprovalAnnotation: value}); found != nil {
			t.Errorf("%q is %+v", value, found)
		}
	}
	for range 4000 {
		given.Groups = append(given.Groups, "a-group-of-a-company")
	}
	if _, err := given.Encode(); err == nil || !strings.Contains(err.Error(), "at most 32768 are kept") {
		t.Errorf("many groups: %v", err)
	}
}
