package rollout

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

// pair is two extensions in one cluster that want some of the same objects.
type pair struct {
	chains []*saga
	last   int64
	made   int
	// unrecorded objects belong to a chain whose store was lost.
	unrecorded map[types.UID]bool
	// acting is the chain whose pass is running.
	acting string
	// misdirected are deletes of the other chain's objects, by uid. The server refuses them if they
	// have a precondition.
	misdirected map[types.UID]string
}

// beside returns another chain in the same cluster.
func (s *saga) beside(owner string) *saga {
	other := &saga{model: s.model, clock: s.clock, owner: owner, bodies: map[manifest.Digest][]byte{}, orphan: map[int64]bool{}, listed: map[int64][]manifest.ID{}}
	other.restart()
	return other
}

// TestTwoExtensions: two extensions run with random policies, orders and protections, and one is
// deleted at a random time. At the end each object has one owner, and no extension has deleted or
// changed the other's objects.
func TestTwoExtensions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		one := newSaga()
		one.owner = "one"
		p := &pair{chains: []*saga{one, one.beside("two")}, unrecorded: map[types.UID]bool{}}
		one.refuse = p.watchDeletes
		either := func(t *rapid.T) *saga { return rapid.SampledFrom(p.chains).Draw(t, "chain") }
		t.Repeat(map[string]func(*rapid.T){
			"pass":    func(t *rapid.T) { p.pass(t, either(t)) },
			"restart": func(t *rapid.T) { either(t).restart() },
			"crash":   func(t *rapid.T) { p.crash(t, either(t)) },
			"import":  func(t *rapid.T) { p.reimport(either(t)) },
			"probe":   func(*rapid.T) { one.alter(refOf("Deployment.apps a/x").ID, func(o *thing) { o.readyAt = -1 }) },
			"upgrade": func(t *rapid.T) { p.upgrade(t, either(t)) },
			"archive": func(t *rapid.T) { p.archive(t, either(t)) },
			"delete":  func(t *rapid.T) { one.erase(refOf(rapid.SampledFrom(pool()).Draw(t, "object")).ID) },
			"watch":   func(t *rapid.T) { one.deliver(rapid.IntRange(1, 4).Draw(t, "changes")) },
			"lag":     func(t *rapid.T) { one.lagging = rapid.Bool().Draw(t, "lagging") },
		})
		one.lagging = false
		reports := p.settle(t)
		p.compare(t, reports)
	})
}

// watchDeletes records a delete of an object that the other chain has applied and labelled.
func (p *pair) watchDeletes(verb string, ref manifest.Ref) error {
	have := p.chains[0].objects[ref.ID]
	if verb != "delete" || have == nil {
		return nil
	}
	label := have.fields["labels:"+testNames().ChainLabel]
	if label.value != "" && label.value != p.acting && slices.Contains(label.by, "penstock/"+label.value) {
		p.misdirected[have.uid] = fmt.Sprintf("%s deleted %s, which is %s's", p.acting, ref.ID, label.value)
	}
	return nil
}

func (p *pair) pass(t *rapid.T, s *saga) Report {
	p.acting, p.misdirected = s.owner, map[types.UID]string{}
	report, err := s.pass()
	for uid, what := range p.misdirected {
		if s.deleted[uid] {
			t.Fatal(what)
		}
	}
	if err != nil {
		t.Fatalf("reconciling %s: %v", s.owner, err)
	}
	return report
}

// crash kills one process during a pass, and restarts it.
func (p *pair) crash(t *rapid.T, s *saga) {
	p.acting, p.misdirected = s.owner, map[types.UID]string{}
	s.fuse, s.lastWriteLands = rapid.IntRange(0, 4).Draw(t, "writes"), rapid.Bool().Draw(t, "lands")
	if _, err := s.pass(); err != nil && !errors.Is(err, errCrash) {
		t.Fatalf("reconciling %s: %v", s.owner, err)
	}
	s.restart()
}

// reimport imports the revisions of one chain into an empty store.
func (p *pair) reimport(s *saga) {
	s.reimport(func(layer Layer) string {
		p.made++
		return fmt.Sprintf("uid-%d-of-%d", p.made, layer.Revision)
	})
	for _, o := range s.objects {
		if o.fields["labels:"+testNames().ChainLabel].value == s.owner {
			p.unrecorded[o.uid] = true
		}
	}
}

func (p *pair) upgrade(t *rapid.T, s *saga) {
	if len(s.layers) > 2 {
		t.Skip("enough revisions")
	}
	p.last++
	protections := []stage.Adoption{stage.AdoptNever, stage.AdoptUncontrolled, stage.AdoptAlways}
	r := s.revision(p.last).adopting(rapid.SampledFrom(protections).Draw(t, "adopt"))
	objects := rapid.Permutation(pool()).Draw(t, "order")[:rapid.IntRange(1, 4).Draw(t, "objects")]
	for i := range objects {
		objects[i] += fmt.Sprintf("=%s-%d", s.owner, p.last)
	}
	r.phase("base", objects...)
	s.layers = append([]Layer{r.layer()}, s.layers...)
}

func (p *pair) archive(t *rapid.T, s *saga) {
	if len(s.layers) == 0 {
		t.Skip("no revision")
	}
	i := rapid.IntRange(0, len(s.layers)-1).Draw(t, "layer")
	s.layers = slices.Delete(slices.Clone(s.layers), i, i+1)
}

// settle does passes of both chains until neither sends a request.
func (p *pair) settle(t *rapid.T) []Report {
	one := p.chains[0]
	for range 200 {
		one.controllers()
		one.deliver(len(one.changes))
		one.spent()
		var reports []Report
		for _, s := range p.chains {
			reports = append(reports, p.pass(t, s))
		}
		writes, reads := one.spent()
		if len(writes)+len(reads)+len(one.changes) == 0 && len(one.unready()) == 0 {
			return reports
		}
		one.clock.SetTime(one.clock.Now().Add(2 * time.Minute))
	}
	t.Fatal("they do not come to rest")
	return nil
}

// compare checks the cluster against the rule: an object belongs to a chain that lists it.
func (p *pair) compare(t *rapid.T, reports []Report) {
	rules := make([]rule, len(p.chains))
	for i, s := range p.chains {
		rules[i] = ruleOf(s.layers, s.stored.Reached)
	}
	for _, name := range pool() {
		id := refOf(name).ID
		o := p.chains[0].objects[id]
		for i, s := range p.chains {
			step, wants := rules[i].wanted[id]
			switch {
			case wants && o == nil:
				t.Errorf("%s is missing, and %s wants it", id, s.owner)
			case wants && o.fields["labels:"+testNames().ChainLabel].value == s.owner:
				if have := o.fields["annotations:"+testNames().AppliedAnnotation].value; have != string(step.Digest) {
					t.Errorf("%s is %s's, at %s instead of %s", id, s.owner, have, step.Digest)
				}
			case wants && reports[i].Layers[0].Complete && len(s.layers) == 1:
				t.Errorf("%s is not %s's, who is content: %+v", id, s.owner, o)
			}
		}
		if o == nil {
			continue
		}
		owner := o.fields["labels:"+testNames().ChainLabel].value
		i := slices.IndexFunc(p.chains, func(s *saga) bool { return s.owner == owner })
		if i >= 0 && !slices.Contains(o.owners(), "penstock/"+owner) {
			continue // the chain that was taking it over was killed, and both gave it up before either could record it
		}
		if i < 0 || !rules[i].listed[id] && !p.unrecorded[o.uid] {
			t.Errorf("%s belongs to %q, who does not list it: %+v", id, owner, o)
		}
	}
}
