package observe

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// TestMemoryOfAnObject measures the memory of 20000 observed objects with only metadata.
func TestMemoryOfAnObject(t *testing.T) {
	const objects, most = 20000, 900
	raw := strings.Replace(live, "sha256:abc", "sha256:"+strings.Repeat("0123456789abcdef", 4), 1)
	raw = strings.Replace(raw, `"u-1"`, `"6f4b2a1c-0d3e-4f5a-8b7c-9d0e1f2a3b4c"`, 1)

	c, err := newCache(Options{Mapping: newFakeServer().mapping, Names: names(), Notify: func(string) {}}, newFakeServer())
	if err != nil {
		t.Fatal(err)
	}
	kind := configMaps().GroupKind()
	k := keeper{names: names(), kind: kind}
	v := newView()
	interests := make([]Interest, objects)

	before := heap()
	for n := range objects {
		delivered := partialOf(t, raw)
		delivered.Name = fmt.Sprintf("argocd-server-%d", n)
		kept, err := k.keep(delivered)
		if err != nil {
			t.Fatal(err)
		}
		v.put(kept)
		interests[n] = Interest{ID: kept.ID, Version: "v1"}
	}
	observed := heap()
	c.Want("argocd", interests...)
	wanted := heap()
	perObject, perInterest := (observed-before)/objects, (wanted-observed)/objects
	t.Logf("one object: %d bytes observed, %d bytes to know who wants it", perObject, perInterest)
	if perObject+perInterest > most {
		t.Errorf("an object costs %d bytes, more than %d", perObject+perInterest, most)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(&v)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func BenchmarkKeep(b *testing.B) {
	t := &testing.T{}
	delivered := partialOf(t, live)
	k := keeper{names: names(), kind: configMaps().GroupKind()}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := k.keep(delivered); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	c, err := newCache(Options{Mapping: newFakeServer().mapping, Names: names(), Notify: func(string) {}}, newFakeServer())
	if err != nil {
		b.Fatal(err)
	}
	c.Want("a", want("x"))
	b.ReportAllocs()
	for b.Loop() {
		c.Get(id("x"))
	}
}
