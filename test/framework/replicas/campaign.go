package replicas

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/rule"
)

// MaxFailover is the longest time until another replica must lead.
const MaxFailover = 15 * time.Second

// Plan lists the faults for a set of replicas.
type Plan struct {
	// Faults are names of faults, see Parse. They run in this order, and repeat until Duration has
	// passed. Without a Duration they run once.
	Faults   []string
	Duration time.Duration
	// Seed is the seed of random choices.
	Seed uint64
	// Short makes faults last for seconds.
	Short bool
	// Timed fails the test if a failover takes longer than MaxFailover, or an answer to a client
	// longer than requestTimeout. Set it only on an otherwise idle machine.
	Timed bool
}

// campaign is a running plan.
type campaign struct {
	set     *Set
	plan    Plan
	random  *rand.Rand
	journal *journal
	// failovers are the durations of the failovers. silence is the longest time without an
	// acknowledged write straight to the Service, apart from faults that cause a silence. stale
	// counts writes of replicas that had lost the lease.
	failovers []time.Duration
	silence   time.Duration
	stale     int
}

const (
	// Half of the clients connect through the host, half straight to the Service.
	writerCount, chainsPerWriter = 6, 2
	quietBetween                 = 2 * time.Second
)

// Campaign causes faults while clients write and watch, and then checks the result. Exactly the
// acknowledged writes are stored. Watchers have seen every write, in order. One replica leads, and
// the cluster matches the revisions. A violation fails the test.
func (s *Set) Campaign(t testing.TB, plan Plan) {
	t.Helper()
	c := &campaign{set: s, plan: plan, random: seeded(plan.Seed, "faults"), journal: newJournal()}
	s.MustKubectl("create", "namespace", namespace)
	s.say("faults %s, SEED=%d", strings.Join(plan.Faults, ", "), plan.Seed)

	writing, stopWriting := context.WithCancel(t.Context())
	watching, stopWatching := context.WithCancel(t.Context())
	var writers, watchers sync.WaitGroup
	// No client may write after the test has ended.
	t.Cleanup(func() {
		stopWriting()
		stopWatching()
		writers.Wait()
		watchers.Wait()
	})
	saw := c.watch(t, watching, &watchers)
	c.write(t, writing, &writers)
	c.meanwhile(t, quietBetween)
	c.trouble(t)
	stopWriting()
	writers.Wait()
	c.verdict(t, saw)
}

// config returns a client configuration through the host or straight to the Service.
func (c *campaign) config(straight bool) *rest.Config {
	if straight {
		return c.set.direct()
	}
	return c.set.Config()
}

func (c *campaign) watch(t testing.TB, ctx context.Context, running *sync.WaitGroup) []*watcher {
	t.Helper()
	var saw []*watcher
	for _, straight := range []bool{false, true, true} {
		w := newWatcher(fmt.Sprintf("watcher %d", len(saw)+1), newClient(t, c.config(straight), 0), c.journal)
		saw = append(saw, w)
		running.Go(func() { w.run(ctx) })
	}
	return saw
}

// answerTimeout bounds a client's wait for an answer. On a shared machine servers need up to six
// times as long.
func (c *campaign) answerTimeout() time.Duration {
	if c.plan.Timed {
		return requestTimeout
	}
	return 6 * requestTimeout
}

func (c *campaign) write(t testing.TB, ctx context.Context, running *sync.WaitGroup) {
	t.Helper()
	for i := range writerCount {
		w := &writer{client: newClient(t, c.config(i%2 == 1), c.answerTimeout()), way: throughHost, journal: c.journal,
			random: seeded(c.plan.Seed, fmt.Sprint("writer ", i)), pause: writePause}
		if i%2 == 1 {
			w.way = straightOn
		}
		if c.plan.Short {
			// Other tests run on this machine too. A fault still meets ten writes a second.
			w.pause *= 4
		}
		for n := range chainsPerWriter {
			w.chains = append(w.chains, &writtenChain{name: fmt.Sprintf("ext%d%c", i, 'a'+n)})
		}
		running.Go(func() { w.run(ctx) })
	}
}

// trouble causes the faults in sequence. Each fault begins when all replicas are healthy.
func (c *campaign) trouble(t testing.TB) {
	t.Helper()
	byName := map[string]fault{}
	for _, f := range faults() {
		byName[f.name] = f
	}
	begun := time.Now()
	for i := 0; i < len(c.plan.Faults) || time.Since(begun) < c.plan.Duration; i++ {
		f := byName[c.plan.Faults[i%len(c.plan.Faults)]]
		before := c.journal.acknowledged()
		c.journal.listen()
		what := f.run(c, t)
		c.set.whole(t)
		through, straight := c.journal.silence(throughHost), c.journal.silence(straightOn)
		if !f.silent {
			c.silence = max(c.silence, straight)
		}
		c.set.say("%-12s %s; %d writes acknowledged, silence of %.1f s through the host and %.1f s straight",
			f.name, what, c.journal.acknowledged()-before, through.Seconds(), straight.Seconds())
		c.meanwhile(t, c.during(quietBetween))
		for _, r := range c.set.replicas {
			if log := r.Log(); strings.Contains(log, "panic:") {
				t.Errorf("%s panicked:\n%s", r, lastLines(log, 60))
			}
		}
	}
}

// verdict compares the journal and the watchers with the store.
func (c *campaign) verdict(t testing.TB, saw []*watcher) {
	t.Helper()
	c.set.whole(t)
	api := newClient(t, c.config(false), c.answerTimeout())
	objects, err := dynamic.NewForConfig(c.set.Config())
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	settled := rule.Cluster{Revisions: api, Objects: objects, Resources: []schema.GroupVersionResource{{Version: "v1", Resource: "configmaps"}}}
	c.set.say("settling")
	c.set.eventually(t, "the cluster to be as the revisions say", func(ctx context.Context) error {
		if wrong := settled.Wrong(ctx); len(wrong) > 0 {
			return fmt.Errorf("%s", strings.Join(wrong, "\n"))
		}
		return nil
	})
	list, err := api.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatalf("replicas: %v", err)
	}
	c.journal.judge(list.Items)
	for _, w := range saw {
		c.set.eventually(t, "a watcher", func(context.Context) error { return w.reached(newestVersion(c.journal)) })
		c.journal.watched(&w.seen)
	}
	c.leaders(t)
	c.report(t, len(list.Items), saw)
}

// newestVersion returns the highest acknowledged version.
func newestVersion(j *journal) uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	newest := uint64(0)
	for _, a := range j.acks {
		newest = max(newest, a.version)
	}
	return newest
}

// leaders checks that exactly one replica reports that it leads.
func (c *campaign) leaders(t testing.TB) {
	t.Helper()
	c.set.eventually(t, "one leader", func(context.Context) error {
		var leading []string
		for _, r := range c.set.replicas {
			config := c.set.direct()
			config.Host = fmt.Sprint("https://127.0.0.1:", r.Port())
			client, err := rest.HTTPClientFor(config)
			if err != nil {
				return err
			}
			body, err := read(client, config.Host+"/metrics")
			client.CloseIdleConnections()
			if err != nil {
				return err
			}
			if strings.Contains(body, "\npenstock_leader 1\n") {
				leading = append(leading, r.String())
			}
		}
		if len(leading) != 1 {
			return fmt.Errorf("%q lead", leading)
		}
		return nil
	})
}

// report prints the result.
func (c *campaign) report(t testing.TB, revisions int, saw []*watcher) {
	t.Helper()
	for _, w := range saw {
		c.set.say("%s resumed %d times and listed anew %d times", w.name, w.resumed-1, w.relists)
	}
	slowest := time.Duration(0)
	for _, took := range c.failovers {
		slowest = max(slowest, took)
	}
	c.journal.mu.Lock()
	defer c.journal.mu.Unlock()
	var tally []string
	for _, what := range slices.Sorted(maps.Keys(c.journal.tally)) {
		tally = append(tally, fmt.Sprintf("%s %d", what, c.journal.tally[what]))
	}
	c.set.say("%s", strings.Join(tally, ", "))
	c.set.say("%d failovers, the slowest took %.1f s; at most %.1f s without an acknowledged write; %d writes of replicas that had lost the lease",
		len(c.failovers), slowest.Seconds(), c.silence.Seconds(), c.stale)
	for _, wrong := range c.journal.wrong {
		t.Error(wrong)
	}
	if c.plan.Timed && slowest > MaxFailover {
		t.Errorf("a failover took %s, more than %s", slowest, MaxFailover)
	}
	verdict := "every one is there, and nothing else"
	if t.Failed() {
		verdict = "NOT as they were acknowledged: see below"
	}
	c.set.say("verdict: %d writes acknowledged, %d revisions: %s", len(c.journal.acks), revisions, verdict)
}
