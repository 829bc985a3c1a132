package maintenancewindow

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/maintenancewindow"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// nights returns a window with a schedule, a duration and a time zone.
func nights(kind, schedule string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "nights", "generation": int64(3)},
		"spec":     map[string]any{"type": kind, "schedule": schedule, "duration": "4h"},
	}}
	object.SetGroupVersionKind(maintenancewindow.Kind)
	return object
}

func moment(start, end time.Time) *unstructured.Unstructured {
	object := nights(maintenancewindow.TypeAllow, "")
	object.Object["spec"] = map[string]any{"type": maintenancewindow.TypeAllow, "start": start.Format(time.RFC3339), "end": end.Format(time.RFC3339)}
	return object
}

func TestStatusAt(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		object *unstructured.Unstructured
		// want is the expected conditions, opensAt and closesAt, and the time of the next change.
		want    string
		changes time.Time
	}{
		"Closed":  {"it says when it opens", nights("Allow", "0 22 * * *"), "Accepted=True/Valid Open=False/Closed 28T22 29T02", noon.Add(10 * time.Hour)},
		"Open":    {"it says until when it is open", nights("Allow", "0 11 * * *"), "Accepted=True/Valid Open=True/Open 28T11 28T15", noon.Add(3 * time.Hour)},
		"Deny":    {"a Deny is open or closed as an Allow is", nights("Deny", "0 11 * * *"), "Accepted=True/Valid Open=True/Open 28T11 28T15", noon.Add(3 * time.Hour)},
		"Over":    {"one that was open once does not open any more", moment(noon.Add(-2*time.Hour), noon), "Accepted=True/Valid Open=False/Over - -", time.Time{}},
		"Once":    {"one that opens once says when", moment(noon.Add(time.Hour), noon.Add(2*time.Hour)), "Accepted=True/Valid Open=False/Closed 28T13 28T14", noon.Add(time.Hour)},
		"Invalid": {"nobody knows when one opens that cannot be read", nights("Allow", "0 25 * * *"), "Accepted=False/Invalid Open=Unknown/NotKnown - -", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			windows := maintenancewindow.NewAll([]unstructured.Unstructured{*tc.object})
			status, changes := statusAt(windows[0], tc.object, noon)
			var words []string
			for _, condition := range status.Conditions {
				words = append(words, fmt.Sprintf("%s=%s/%s", condition.Type, condition.Status, condition.Reason))
				if condition.ObservedGeneration != 3 || condition.Message == "" {
					t.Errorf("%+v is not of this generation, or has no message", condition)
				}
			}
			for _, at := range []*metav1.Time{status.OpensAt, status.ClosesAt} {
				if at == nil {
					words = append(words, "-")
				} else {
					words = append(words, at.UTC().Format("02T15"))
				}
			}
			if got := strings.Join(words, " "); got != tc.want || !changes.Equal(tc.changes) {
				t.Errorf("%s: it is %s until %s, want %s until %s", tc.reason, got, changes, tc.want, tc.changes)
			}
		})
	}
}

// TestNotKnown: no upgrade begins before the windows are known, nor after the definition was
// replaced until they are known again. Other controllers are notified of each change.
func TestNotKnown(t *testing.T) {
	c := New(Options{Clock: testclock.NewFakeClock(noon), Skew: func() time.Duration { return 0 }})
	told := 0
	c.OnChange(func() { told++ })
	if c.Decide(nil).Open {
		t.Error("an upgrade may begin before anything is known")
	}
	c.defined(false)
	if !c.Decide(nil).Open {
		t.Error("no upgrade may begin although the host has no windows")
	}
	c.defined(true)
	if c.Decide(nil).Open {
		t.Error("an upgrade may begin before the windows of the definition were read")
	}
	if told != 2 {
		t.Errorf("others were told %d times, want 2", told)
	}
}

// TestFollow: the controller reads the windows, notifies other controllers when one opens by the
// clock of the host, and writes the status once for each change.
func TestFollow(t *testing.T) {
	clock := testclock.NewFakeClock(noon)
	host := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{maintenancewindow.Resource: "MaintenanceWindowList"}, nights("Allow", "0 13 * * *"))
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}, ObjectMeta: metav1.ObjectMeta{Name: maintenancewindow.DefinitionName, UID: "crd"}}
	// The clock of this machine is two hours ahead of the host's clock.
	clock.SetTime(noon.Add(2 * time.Hour))
	c := New(Options{Windows: host, Definitions: metadatafake.NewSimpleMetadataClient(scheme, definition), Clock: clock, Skew: func() time.Duration { return 2 * time.Hour }})
	told := make(chan struct{}, 100)
	c.OnChange(func() { told <- struct{}{} })
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer stop()
	is := func(open metav1.ConditionStatus) func() bool {
		return func() bool {
			object, err := host.Tracker().Get(maintenancewindow.Resource, "", "nights")
			if err != nil {
				return false
			}
			read, err := maintenancewindow.From(object.(*unstructured.Unstructured)) //nolint:forcetypeassert // the fake holds only this type
			return err == nil && meta.IsStatusConditionPresentAndEqual(read.Status.Conditions, maintenancewindow.ConditionOpen, open)
		}
	}
	await := func(what string, is func() bool) {
		t.Helper()
		limit := time.After(30 * time.Second)
		for !is() {
			select {
			case <-limit:
				t.Fatalf("%s: it does not come", what)
			case <-time.After(time.Millisecond):
			}
		}
	}
	await("it is closed", is(metav1.ConditionFalse))
	if decision := c.Decide(nil); decision.Open || !decision.Opens.Equal(noon.Add(time.Hour)) {
		t.Errorf("it decides %+v", decision)
	}
	for len(told) > 0 {
		<-told
	}
	await("it opens by the clock of the host", func() bool {
		if clock.Now().Before(noon.Add(5 * time.Hour)) {
			clock.Step(time.Minute)
		}
		return len(told) > 0
	})
	if !c.Decide(nil).Open {
		t.Error("others were told before it was open")
	}
	await("its status says so", is(metav1.ConditionTrue))
	writes := 0
	for _, action := range host.Actions() {
		if action.GetVerb() == "patch" {
			writes++
		}
	}
	if writes != 2 {
		t.Errorf("its status was written %d times, want 2", writes)
	}
}
