package imagetemplate

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/imagetemplate"
)

// versionEvery is the shortest interval between requests for the cluster's version, which cannot be
// watched. The requests stop while no template needs the version.
const versionEvery = time.Minute

type versions struct {
	reader Reader
	clock  clock.WithTicker
	// wanted wakes run when a template needs the version.
	wanted chan struct{}

	mu    sync.Mutex
	inUse bool
	// asked is the time of the last request, answered the time of the last answer.
	asked, answered time.Time
	// git is the last answer.
	git string
}

func newVersions(reader Reader, c clock.WithTicker) *versions {
	return &versions{reader: reader, clock: c, wanted: make(chan struct{}, 1)}
}

func (v *versions) use(inUse bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if inUse && !v.inUse && v.clock.Since(v.asked) > versionEvery {
		v.answered = time.Time{} // it is outdated, because the requests had stopped
	}
	if v.inUse = inUse; inUse {
		select {
		case v.wanted <- struct{}{}:
		default:
		}
	}
}

// values returns the values of the well-known variables, or nil if the version cannot be parsed.
// known is false while there is no answer. run calls changed when the answer arrives.
func (v *versions) values() (values map[string]string, known bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.answered.IsZero() {
		return nil, false
	}
	values, err := imagetemplate.KubeVersion(v.git)
	if err != nil {
		return nil, true
	}
	return values, true
}

// run requests the version until ctx ends, and calls changed when it changes.
func (v *versions) run(ctx context.Context, changed func()) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.wanted:
		}
		for v.isInUse() {
			v.mu.Lock()
			wait := versionEvery - v.clock.Since(v.asked)
			v.mu.Unlock()
			if wait > 0 {
				select {
				case <-ctx.Done():
					return
				case <-v.clock.After(wait):
				}
				continue // no template may need it any more
			}
			v.ask(ctx, changed)
		}
	}
}

func (v *versions) isInUse() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.inUse
}

// ask sends one request. If it fails, the last version stays.
func (v *versions) ask(ctx context.Context, changed func()) {
	v.mu.Lock()
	v.asked = v.clock.Now()
	v.mu.Unlock()
	git, err := v.reader.Version(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "The version of the cluster is not known; asking again", "after", versionEvery)
		return
	}
	v.mu.Lock()
	other := v.answered.IsZero() || git != v.git
	v.git, v.answered = git, v.clock.Now()
	v.mu.Unlock()
	if other {
		changed()
	}
}
