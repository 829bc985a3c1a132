package live

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
)

const (
	// freshFor is the lifetime of a cached answer. It suffices for a request for the table and then
	// a request for YAML.
	freshFor = 3 * time.Second
	// maxAnswers bounds the cached answers. An answer may have some megabytes.
	maxAnswers = 8
)

// cache caches answers for a short time.
type cache struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	answers map[string]answer
}

type answer struct {
	preview revisiondiff.Preview
	until   time.Time
}

func newCache(clock clock.PassiveClock) *cache {
	return &cache{clock: clock, answers: map[string]answer{}}
}

// get returns a fresh answer with its age. Callers must not change it.
func (c *cache) get(key string) (revisiondiff.Preview, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.answers[key]
	if !ok || !c.clock.Now().Before(found.until) {
		return revisiondiff.Preview{}, false
	}
	preview := found.preview
	preview.Age = c.clock.Now().Sub(found.until.Add(-freshFor))
	return preview, true
}

// put caches an answer. It removes stale answers, and the oldest answer if there are too many.
func (c *cache) put(key string, preview revisiondiff.Preview) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, oldest := c.clock.Now(), ""
	for have, a := range c.answers {
		if !now.Before(a.until) {
			delete(c.answers, have)
			continue
		}
		if oldest == "" || a.until.Before(c.answers[oldest].until) {
			oldest = have
		}
	}
	if _, known := c.answers[key]; !known && len(c.answers) >= maxAnswers {
		delete(c.answers, oldest)
	}
	c.answers[key] = answer{preview: preview, until: now.Add(freshFor)}
}
