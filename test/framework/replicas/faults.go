package replicas

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// fault is something that breaks, and is whole again when it returns. It says in
// words what was broken and what came of it.
type fault struct {
	name string
	// silent is true for faults during which no client can be answered.
	silent bool
	run    func(c *campaign, t testing.TB) string
}

// faults are all that there are, in the order in which they come when all are asked
// for.
func faults() []fault {
	return []fault{
		{name: "kill-leader", run: (*campaign).killLeader},
		{name: "kill-replica", run: (*campaign).killReplica},
		{name: "kill-etcd", run: (*campaign).killEtcd},
		{name: "cut", run: (*campaign).cut},
		{name: "stall", run: (*campaign).stall},
		{name: "slow", run: (*campaign).slow},
		{name: "pause", run: (*campaign).pause},
		{name: "host", silent: true, run: (*campaign).cutHost},
		{name: "roll", run: (*campaign).roll},
	}
}

// Parse reads a list of faults: "all", or names with commas between them.
func Parse(list string) ([]string, error) {
	var all, chosen []string
	for _, f := range faults() {
		all = append(all, f.name)
	}
	if list == "all" {
		return all, nil
	}
	for _, name := range strings.Split(list, ",") {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("there is no fault %q; there are all, %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, name)
	}
	return chosen, nil
}

// killLeader kills the process that leads, as a machine that is lost would.
func (c *campaign) killLeader(t testing.TB) string {
	leader := c.set.leader(t)
	leader.Kill(t)
	took := c.failover(t, leader)
	c.set.launch(t, leader)
	return fmt.Sprintf("%s killed; %s", leader, took)
}

// killReplica kills any process.
func (c *campaign) killReplica(t testing.TB) string {
	r := c.anyReplica()
	r.Kill(t)
	c.meanwhile(t, c.during(2*time.Second))
	c.set.launch(t, r)
	return fmt.Sprintf("%s killed and started again", r)
}

// killEtcd kills a member of etcd, which may lead it, and brings it back.
func (c *campaign) killEtcd(t testing.TB) string {
	m := c.set.members[c.random.IntN(Replicas)]
	if err := m.process.Kill(); err != nil {
		t.Fatalf("replicas: %v", err)
	}
	c.meanwhile(t, c.during(5*time.Second))
	m.start(t)
	m.wait(t)
	return fmt.Sprintf("%s killed and started again", m.name)
}

// cut takes a replica's whole network to etcd away.
func (c *campaign) cut(t testing.TB) string {
	return "cut off: " + c.isolate(t, (*Link).Cut)
}

// stall lets a replica's requests to etcd go nowhere, without an error.
func (c *campaign) stall(t testing.TB) string {
	return "stalled: " + c.isolate(t, (*Link).Stall)
}

// isolate does something to all links between a replica and etcd. If it leads, another
// one has to take over, although nobody keeps it from renewing the lease.
func (c *campaign) isolate(t testing.TB, how func(*Link)) string {
	r := c.anyReplica()
	led := c.set.leader(t) == r
	for _, link := range r.stores {
		how(link)
	}
	what := fmt.Sprintf("%s from etcd", r)
	if led {
		what += ", which led; " + c.failover(t, r)
	}
	c.meanwhile(t, c.during(8*time.Second))
	for _, link := range r.stores {
		link.Heal()
	}
	return what
}

// slow makes a replica's network to etcd slow.
func (c *campaign) slow(t testing.TB) string {
	r := c.anyReplica()
	const delay = 100 * time.Millisecond
	for _, link := range r.stores {
		link.Delay(delay)
	}
	c.meanwhile(t, c.during(5*time.Second))
	for _, link := range r.stores {
		link.Heal()
	}
	return fmt.Sprintf("%s %s away from etcd", r, delay)
}

// pause freezes the leader until another one leads, and a little longer. When it wakes
// it believes to lead; what it then writes is counted.
func (c *campaign) pause(t testing.TB) string {
	leader := c.set.leader(t)
	leader.signal(t, syscall.SIGSTOP)
	took := c.failover(t, leader)
	pause(t.Context(), time.Duration(c.random.IntN(3000))*time.Millisecond)
	mark := c.set.Audit().Mark()
	leader.signal(t, syscall.SIGCONT)
	c.set.whole(t)
	return fmt.Sprintf("%s frozen; %s; awake again, it %s", leader, took, c.staleWrites(mark, leader))
}

// staleWrites tells what a replica has written to objects of extensions since a mark,
// although it does not lead any more.
func (c *campaign) staleWrites(mark plane.Mark, r *replica) string {
	if r.source == "" {
		return "may have written: replicas cannot be told apart on this system"
	}
	writes := c.set.Audit().Since(mark, plane.Writes(), func(request plane.Request) bool {
		return request.Source == r.source && request.Namespace == namespace && !strings.Contains(request.URI, "dryRun=")
	})
	refused := 0
	for _, request := range writes {
		if request.Code >= 400 {
			refused++
		}
	}
	c.stale += len(writes) - refused
	return fmt.Sprintf("tried %d writes of objects, %d of them refused", len(writes), refused)
}

// cutHost cuts the connections of all replicas to the host, for longer or shorter than a lease lasts.
// The host can still send requests, but replicas cannot ask it to authorize them.
func (c *campaign) cutHost(t testing.TB) string {
	for _, r := range c.set.replicas {
		r.host.Cut()
	}
	lasted := c.during(time.Duration(3+c.random.IntN(12)) * time.Second)
	pause(t.Context(), lasted)
	for _, r := range c.set.replicas {
		r.host.Heal()
	}
	return fmt.Sprintf("all replicas cut off from the host for %s", lasted)
}

// roll stops and starts one replica after the other, as a Deployment does that is
// updated. Nobody may notice: every write is answered. Those through the host are only
// counted: it cannot send a request again whose body it has passed on, so one that
// crosses the end of its connection is lost on a machine that is very busy
// (https://github.com/kubernetes/kubernetes/issues/135285).
func (c *campaign) roll(t testing.TB) string {
	before := c.journal.failures()
	rolled := c.set.replicas
	if c.plan.Short {
		rolled = []*replica{c.set.leader(t)}
	}
	for _, r := range rolled {
		r.Stop(t)
		c.set.launch(t, r)
		c.set.whole(t)
	}
	through := 0
	for _, failed := range c.journal.failures()[len(before):] {
		if strings.HasPrefix(failed, string(throughHost)) {
			through++
			continue
		}
		c.journal.violation("a request was not answered during a rolling update: %s", failed)
	}
	return fmt.Sprintf("%d replicas stopped and started, one after the other, %d requests through the host not answered", len(rolled), through)
}

// anyReplica chooses one; the one that leads every other time.
func (c *campaign) anyReplica() *replica {
	if c.random.IntN(2) == 0 {
		ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
		defer cancel()
		if leader, err := c.set.holder(ctx); err == nil && leader != nil {
			return leader
		}
	}
	return c.set.replicas[c.random.IntN(Replicas)]
}

// during returns a random duration of a fault, near the given one.
func (c *campaign) during(around time.Duration) time.Duration {
	if c.plan.Short {
		around /= 3
	}
	return around/2 + time.Duration(c.random.Int64N(int64(around)))
}

// meanwhile waits while something is broken; the API must answer: somebody's write is
// acknowledged that was sent since.
func (c *campaign) meanwhile(t testing.TB, lasting time.Duration) {
	t.Helper()
	begun, before := time.Now(), c.journal.acknowledged()
	c.set.eventually(t, "a write to be acknowledged while something is broken", func(context.Context) error {
		if c.journal.acknowledged() <= before {
			return fmt.Errorf("none was")
		}
		return nil
	})
	pause(t.Context(), lasting-time.Since(begun))
}

// failover waits until another replica leads than the one that was lost, and says how
// long that and the first acknowledged write took.
func (c *campaign) failover(t testing.TB, lost *replica) string {
	t.Helper()
	begun, before := time.Now(), c.journal.acknowledged()
	var answered, took time.Duration
	var next *replica
	c.set.eventually(t, "another leader, and a write to be acknowledged", func(ctx context.Context) error {
		if answered == 0 && c.journal.acknowledged() > before {
			answered = time.Since(begun)
		}
		if took == 0 {
			holder, err := c.set.holder(ctx)
			if err != nil {
				return err
			}
			if holder != nil && holder != lost {
				next, took = holder, time.Since(begun)
			}
		}
		if answered == 0 || took == 0 {
			return fmt.Errorf("acknowledged: %v, another leads: %v", answered > 0, took > 0)
		}
		return nil
	})
	c.failovers = append(c.failovers, took)
	return fmt.Sprintf("a write acknowledged after %.1f s, %s leads after %.1f s", answered.Seconds(), next, took.Seconds())
}

func seeded(seed uint64, part string) *rand.Rand {
	sum := seed
	for _, b := range []byte(part) {
		sum = sum*1099511628211 + uint64(b)
	}
	return rand.New(rand.NewPCG(seed, sum))
}
