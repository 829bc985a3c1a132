package imagetemplate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/imagetemplate"
)

type cluster struct {
	Reader

	mu      sync.Mutex
	version string
	asked   []time.Time
}

func (c *cluster) Version(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, time.Now())
	if c.version == "" {
		return "", errors.New("no answer")
	}
	return c.version, nil
}

func (c *cluster) questions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

func (c *cluster) set(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

// TestVersions: the version is requested at most once a minute, and only while it is needed. After
// a failure the last version stays.
func TestVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &cluster{version: "v1.34.2"}
		v := newVersions(asked, clock.RealClock{})
		ctx, stop := context.WithCancel(t.Context())
		var changes atomic.Int32
		var running sync.WaitGroup
		running.Go(func() { v.run(ctx, func() { changes.Add(1) }) })
		is := func(minor string, known bool, wantChanges int32, wantAsked int) {
			t.Helper()
			synctest.Wait()
			values, got := v.values()
			if got != known || values[imagetemplate.KubeMinor] != minor || changes.Load() != wantChanges || asked.questions() != wantAsked {
				t.Errorf("it is %v %t with %d changes after %d questions; want %s %t %d %d", values, got, changes.Load(), asked.questions(), minor, known, wantChanges, wantAsked)
			}
		}
		time.Sleep(time.Hour)
		is("", false, 0, 0)
		v.use(true)
		is("34", true, 1, 1)
		time.Sleep(10*versionEvery + time.Second)
		is("34", true, 1, 11)
		asked.set("v1.35.0+k3s1")
		time.Sleep(versionEvery)
		is("35", true, 2, 12)
		asked.set("")
		time.Sleep(versionEvery)
		is("35", true, 2, 13)
		asked.set("1.36") // not a valid version
		time.Sleep(versionEvery)
		is("", true, 3, 14)
		v.use(false)
		time.Sleep(time.Hour)
		is("", true, 3, 14)
		asked.set("v1.36.0")
		v.use(true)
		is("36", true, 4, 15)
		v.use(false)
		v.use(true)
		time.Sleep(versionEvery - time.Second)
		is("36", true, 4, 15)
		stop()
		running.Wait()
		for i := range asked.asked[1:] {
			if asked.asked[i+1].Sub(asked.asked[i]) < versionEvery {
				t.Errorf("questions at %v", asked.asked)
			}
		}
	})
}
