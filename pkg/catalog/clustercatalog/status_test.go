package clustercatalog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func catalog(mode string) *Catalog {
	return &Catalog{ObjectMeta: metav1.ObjectMeta{Name: "hub", Generation: 3}, Spec: Spec{AvailabilityMode: mode}}
}

func TestNext(t *testing.T) {
	unpacked := time.Date(2026, 5, 4, 3, 2, 1, 5, time.UTC)
	content := &Content{Ref: "r.example/hub@sha256:1", Unpacked: unpacked, Base: "https://x/catalogs/hub"}
	hidden := *content
	hidden.Base = ""
	for name, c := range map[string]struct {
		reason               string
		mode                 string
		outcome              Outcome
		serving, progressing string
		resolved, url        string
	}{
		"Served":      {"all went well", "", Outcome{Content: content, Tried: true}, "True/Available", "True/Succeeded", content.Ref, content.Base},
		"Retrying":    {"what is in use stays in use", "", Outcome{Content: content, Err: errors.New("x"), Tried: true}, "True/Available", "True/Retrying", content.Ref, content.Base},
		"Nothing":     {"the first attempt failed", "", Outcome{Err: errors.New("x"), Tried: true}, "False/Unavailable", "True/Retrying", "", ""},
		"Blocked":     {"somebody has to change the spec", "", Outcome{Err: errors.New("x"), Blocked: true, Tried: true}, "False/Unavailable", "False/Blocked", "", ""},
		"NotListened": {"packages can be listed all the same", "", Outcome{Content: &hidden, Tried: true}, "False/Unavailable", "True/Succeeded", content.Ref, ""},
		"Resumed":     {"there was no attempt, so nothing is said of one", "", Outcome{Content: content}, "True/Available", "", content.Ref, content.Base},
		"Off":         {"it is as if there were none", Unavailable, Outcome{Content: content, Tried: true}, "False/UserSpecifiedUnavailable", "True/Succeeded", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			of := catalog(c.mode)
			next := Next(of, c.outcome, now)
			for kind, want := range map[string]string{Serving: c.serving, Progressing: c.progressing} {
				got := ""
				if found := meta.FindStatusCondition(next.Conditions, kind); found != nil {
					if got = string(found.Status) + "/" + found.Reason; found.ObservedGeneration != 3 {
						t.Errorf("%s is about generation %d", kind, found.ObservedGeneration)
					}
				}
				if got != want {
					t.Errorf("%s: %s is %q, want %q", c.reason, kind, got, want)
				}
			}
			of.Status = next
			if of.Resolved() != c.resolved {
				t.Errorf("%s: the image is %q, want %q", c.reason, of.Resolved(), c.resolved)
			}
			if url := ""; next.URLs != nil || c.url != "" {
				if next.URLs != nil {
					url = next.URLs.Base
				}
				if url != c.url {
					t.Errorf("%s: the URL is %q, want %q", c.reason, url, c.url)
				}
			}
			// Without a change, a later status needs no write.
			if again := Next(of, c.outcome, now.Add(time.Hour)); !Same(next, again) {
				t.Errorf("%s: said again it is another status (-first +again):\n%s", c.reason, cmp.Diff(next, again))
			}
		})
	}
}

// TestLongMessage: a message is truncated to the definition's limit.
func TestLongMessage(t *testing.T) {
	next := Next(catalog(""), Outcome{Err: errors.New(strings.Repeat("x", 1<<20)), Tried: true}, time.Now())
	if got := len(meta.FindStatusCondition(next.Conditions, Progressing).Message); got > longestMessage {
		t.Errorf("the message has %d bytes", got)
	}
}

func TestDefinition(t *testing.T) {
	definition, err := Definition().Decode()
	if err != nil {
		t.Fatal(err)
	}
	if definition.Name != DefinitionName || definition.Spec.Group != Resource.Group || definition.Spec.Names.Plural != Resource.Resource {
		t.Errorf("the definition is that of %s", definition.Name)
	}
}
