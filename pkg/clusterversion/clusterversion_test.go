package clusterversion

import (
	"context"
	"errors"
	"testing"
	"time"

	apiversion "k8s.io/apimachinery/pkg/version"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"v1.31.2-gke.5": "1.31.2", "1.30+": "1.30.0", "1.30": "1.30.0", "v1.36.3": "1.36.3", "1.29.6-eks-1552ad0": "1.29.6", "v1.27.3+k3s1": "1.27.3",
		"latest": "", "": "", "v": "", "one.two": "",
	} {
		got, err := ParseKubernetes(text)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q is %s, %v; want %q", text, got, err, want)
		}
	}
	if got, err := ParseOpenShift("4.18.0-rc.1"); err != nil || got.String() != "4.18.0" {
		t.Errorf("%s, %v", got, err)
	}
	if (OpenShift{4, 9, 0}).Less(OpenShift{4, 10, 0}) != true || (Kubernetes{1, 31, 2}).Less(Kubernetes{1, 31, 2}) || !(Kubernetes{1, 9, 9}).Less(Kubernetes{1, 10, 0}) {
		t.Error("versions are not compared by their numbers")
	}
}

// TestEffective: an API server that emulates an earlier minor counts as that minor.
func TestEffective(t *testing.T) {
	for _, tc := range []struct{ binary, major, minor, want string }{
		{"v1.37.2", "1", "37", "v1.37.2"}, {"v1.37.2-gke.5", "1", "36", "1.36"}, {"v1.30.1", "", "", "v1.30.1"}, {"v1.37.2", "1", "36+", "1.36+"}, {"unknown", "1", "36", "unknown"},
	} {
		if got := Effective(&apiversion.Info{GitVersion: tc.binary, EmulationMajor: tc.major, EmulationMinor: tc.minor}); got != tc.want {
			t.Errorf("%+v: %s", tc, got)
		}
	}
}

// TestKnown: a higher version counts after two answers, a lower version at once. A cluster that
// does not answer keeps its last version.
func TestKnown(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	asked, answer := make(chan string), make(chan any)
	k := New(clock, func(ctx context.Context, target string) (string, error) {
		asked <- target
		switch got := (<-answer).(type) {
		case error:
			return "", got
		case string:
			return got, nil
		}
		return "", errors.New("no answer")
	})
	version := func() (string, bool, error) {
		found, known, err := k.Version(t.Context(), "far")
		return found.String(), known, err
	}
	if _, known, err := version(); known || err != nil {
		t.Fatalf("known before the first answer: %v %v", known, err)
	}
	give := func(of any) {
		t.Helper()
		if target := <-asked; target != "far" {
			t.Fatalf("asked for %s", target)
		}
		answer <- of
	}
	give("v1.30.1")
	<-k.Changed()
	if got, known, _ := version(); !known || got != "1.30.1" {
		t.Fatalf("%s %v", got, known)
	}
	// Within a minute, Known sends no second request.
	select {
	case <-asked:
		t.Fatal("asked again at once")
	default:
	}
	step := func() {
		for !clock.HasWaiters() {
			time.Sleep(time.Millisecond) //nolint:forbidigo // the goroutine is about to wait
		}
		clock.Step(freshFor)
	}
	clock.Step(freshFor)
	if got, _, _ := version(); got != "1.30.1" {
		t.Fatal(got)
	}
	give("v1.31.0") // one of several API servers is newer
	step()
	give("v1.30.1") // another API server is older
	for stop := time.Now().Add(time.Minute); ; {
		k.mu.Lock()
		done := !k.clusters["far"].asking
		k.mu.Unlock()
		if done || time.Now().After(stop) {
			break
		}
	}
	if got, _, _ := version(); got != "1.30.1" {
		t.Errorf("%s counts, although an API server has 1.30.1", got)
	}
	clock.Step(freshFor)
	_, _, _ = version()
	give("v1.31.0")
	step()
	give("v1.31.0")
	<-k.Changed()
	if got, _, _ := version(); got != "1.31.0" {
		t.Errorf("%s counts after two answers of 1.31.0", got)
	}
	clock.Step(freshFor)
	_, _, _ = version()
	give("v1.29.0") // the target is another cluster
	<-k.Changed()
	if got, _, _ := version(); got != "1.29.0" {
		t.Errorf("%s counts, the cluster has 1.29.0", got)
	}
	clock.Step(freshFor)
	_, _, _ = version()
	give(errors.New("no connection"))
	for stop := time.Now().Add(time.Minute); ; {
		if got, known, err := version(); err != nil {
			if !known || got != "1.29.0" {
				t.Errorf("without an answer, %s counts", got)
			}
			break
		}
		if time.Now().After(stop) {
			t.Fatal("no error")
		}
	}
}
