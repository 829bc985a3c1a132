package rollout

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/penstock"
)

const (
	// limitedExtensions is the number of extensions that are installed and upgraded under a limit.
	limitedExtensions = 100
	peakLook          = 20 * time.Millisecond
)

// TestMemoryLimit: under a memory limit Penstock is slower, but completes its work. GOMEMLIMIT sets
// the limit, as Penstock does in a container of that size. The kernel counts all memory that it
// cannot reclaim against the limit of the container.
func TestMemoryLimit(t *testing.T) {
	if os.Getenv("BENCH") != "limit" {
		t.Skip("a test of some minutes: run it by `make bench SUITE=limit`")
	}
	b := &bench{report: &measure.Report{}, program: penstock.Build(t), began: time.Now()}
	fmt.Println(measure.Machine(b.began))
	for _, container := range []int{0, 128, 96} { // MiB
		t.Run(fmt.Sprint(container), func(t *testing.T) { b.limited(t, container) })
	}
	fmt.Printf("\n%s, in %s\n", measure.Machine(time.Now()), time.Since(b.began).Round(time.Second))
	if err := b.report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// limited installs and upgrades extensions with the limit of a container of this size in MiB; 0
// means no limit.
func (b *bench) limited(t *testing.T, container int) {
	w := newCasePlane(t, 0)
	name := "no limit"
	if container > 0 {
		name = fmt.Sprintf("%d MiB", container)
		const goPercent = 85 // as in memory.Limit
		t.Setenv("GOMEMLIMIT", fmt.Sprintf("%dKiB", container<<10*goPercent/100))
	}
	o := startOurs(w, b.program, nameOurs, false)
	etcd := measure.ChildrenOf(o.server.Pid())
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for number, step := range []string{"install", "upgrade, one field", "upgrade, one field again"} {
		var releases []release
		for n := range limitedExtensions {
			releases = append(releases, smallRelease(fmt.Sprintf("small-%04d", n), 4, fmt.Sprint(number+1), "1"))
		}
		w.namespaces(releases)
		before, err := measure.CPUOf(o.server.Pid())
		if err != nil {
			t.Fatal(err)
		}
		peak, etcdPeak := watchPeak(o.server.Pid()), func() uint64 { return 0 }
		if len(etcd) == 1 {
			etcdPeak = watchPeak(etcd[0])
		}
		took, err := o.apply(ctx, releases)
		most, etcdMost := peak(), etcdPeak()
		o.profile(name + " " + step)
		if err != nil {
			t.Fatalf("%s with %s: %v\n%s", step, name, err, o.server.Complaints())
		}
		after, err := measure.CPUOf(o.server.Pid())
		if err != nil {
			t.Fatal(err)
		}
		b.report.Table(fmt.Sprintf("%d extensions of 4 objects under a limit", limitedExtensions), "container", "step", "ms", "CPU ms", "most heap and stacks MB", "of etcd MB").
			Row(name, step, fmt.Sprintf("%.0f", millis(took)), fmt.Sprintf("%.0f", millis(after-before)), fmt.Sprintf("%.0f", measure.MB(most)), fmt.Sprintf("%.0f", measure.MB(etcdMost)))
		if container > 0 {
			b.report.AtMost("heap and stacks in a container of "+name+", "+step, measure.MB(uint64(container)<<20), measure.MB(most), "MB")
		}
	}
	if now := measure.ChildrenOf(o.server.Pid()); len(etcd) != 1 || len(now) != 1 || now[0] != etcd[0] {
		t.Errorf("the embedded etcd was process %v and is %v", etcd, now)
	}
}

// watchPeak measures the heap and stacks of a process and its children until the returned function
// is called, which returns the maximum.
func watchPeak(pid int) func() uint64 {
	done := make(chan struct{})
	var most uint64
	var looking sync.WaitGroup
	looking.Go(func() {
		ticker := time.NewTicker(peakLook)
		defer ticker.Stop()
		for {
			if m, err := measure.MemoryOf(pid); err == nil {
				most = max(most, m.Anon)
			}
			select {
			case <-done:
				return
			case <-ticker.C:
			}
		}
	})
	return func() uint64 {
		close(done)
		looking.Wait()
		return most
	}
}
