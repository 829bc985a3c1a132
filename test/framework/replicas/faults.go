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

// fault causes a failure and repairs it before it returns. The result describes the failure and its
// effect.
type fault struct {
	name string
	// silent is true if no client can get an answer during the fault.
	silent bool
	run    func(c *campaign, t testing.TB) string
}

// faults returns all faults in the order of the list "all".
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

// Parse parses a list of faults: "all", or names separated by commas.
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

// killLeader kills the leading process, like the loss of its machine.
func (c *campaign) killLeader(t testing.TB) string {
	leader := c.set.leader(t)
	leader.Kill(t)
	took := c.failover(t, leader)
	c.set.launch(t, leader)
	return fmt.Sprintf("%s killed; %s", leader, took)
}

// killReplica kills any replica.
func (c *campaign) killReplica(t testing.TB) string {
	r := c.anyReplica()
	r.Kill(t)
	c.meanwhile(t, c.during(2*time.Second))
	c.set.launch(t, r)
	return fmt.Sprintf("%s killed and started again", r)
}

// killEtcd kills a member of etcd, perhaps its leader, and restarts it.
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

// cut cuts all of a replica's connections to etcd.
func (c *campaign) cut(t testing.TB) string {
	return "cut off: " + c.isolate(t, (*Link).Cut)
}

// stall stalls a replica's requests to etcd, without an error.
func (c *campaign) stall(t testing.TB) string {
	return "stalled: " + c.isolate(t, (*Link).Stall)
}

// isolate calls how for all links between a replica and etcd. If the replica leads, another replica
// must take over, although the leader could still renew the lease in the host.
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

// slow delays a replica's network to etcd.
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

// pause freezes the leader until another replica leads, and a little longer. When it continues, it
// still believes that it leads. Its later writes are counted.
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

// staleWrites describes the writes of a replica to objects of extensions since a mark, although it
// does not lead any more.
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

// cutHost cuts the connections of all replicas to the host, for longer or shorter than the lease
// lasts. The host can still send requests, but replicas cannot ask it to authorize them.
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

// roll stops and starts the replicas in sequence, like an update of a Deployment. Every write must
// be answered. Failures through the host are only counted. The host cannot repeat a request after
// it has forwarded the body. So on a very busy machine a request is lost if its connection ends at
// that moment (https://github.com/kubernetes/kubernetes/issues/135285).
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

// anyReplica chooses a replica: in half of the calls the leader, otherwise any.
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

// during returns a random duration of a fault, near the given duration.
func (c *campaign) during(around time.Duration) time.Duration {
	if c.plan.Short {
		around /= 3
	}
	return around/2 + time.Duration(c.random.Int64N(int64(around)))
}

// meanwhile waits during a fault. The API must answer: at least one write sent since then must be
// acknowledged.
func (c *campaign) meanwhile(t testing.TB, lasting time.Duration) {
	t.Helper()
	begun, before := time.Now(), c.journal.acknowledged()
	c.set.eventually(t, "a write to be acknowledged while something is broken", func(context.Context) error {
		if c.journal.acknowledged() <= before {
			return fmt.Errorf("no write was acknowledged")
		}
		return nil
	})
	pause(t.Context(), lasting-time.Since(begun))
}

// failover waits until another replica than the lost replica leads. It describes how long that
// took, and the time until the first acknowledged write.
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
			return fmt.Errorf("a write was acknowledged: %v, another replica leads: %v", answered > 0, took > 0)
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
