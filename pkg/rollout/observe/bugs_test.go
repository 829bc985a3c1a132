package observe

import (
	"testing"
	"time"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// Test numbers are those of docs/reference/conformance.md, which lists bugs of other engines.

// lose removes a kind while it is watched.
func lose(f *fakeServer) {
	f.on(configMaps(), func(k *fakeKind) { k.err = pathMissing(); k.unserved = true; clear(k.objects) })
	f.disconnect(configMaps())
	time.Sleep(30 * time.Second)
}

// TestB2DeletedDefinitionEndsItsWatchOnly: the cache and all other watches continue.
func TestB2DeletedDefinitionEndsItsWatchOnly(t *testing.T) {
	bubble(t, func(f *fakeServer) { f.put(configMaps(), object("x", inChain("a"))) }, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		other := manifest.ID{Group: crds().Group, Kind: crds().Kind, Name: "other"}
		c.Want("a", want("x"), Interest{ID: other, Version: "v1"})
		know(t, c, Present, "x", "before")
		lose(f)
		if _, presence := c.Get(other); presence != Absent || f.watching(crds()) != 1 {
			t.Errorf("another kind is %s, and not watched any more", presence)
		}
		f.on(configMaps(), func(k *fakeKind) { k.err, k.unserved = nil, false })
		f.put(configMaps(), object("x", inChain("a")))
		time.Sleep(2 * lastRetry)
		know(t, c, Present, "x", "it is back")
	})
}

// TestB3ReadsDoNotBlock: for an unknown object, Get returns Unknown at once.
func TestB3ReadsDoNotBlock(t *testing.T) {
	bubble(t, func(f *fakeServer) { f.put(configMaps(), object("x", inChain("a"))) }, func(t *testing.T, f *fakeServer, c *Cache, _ *notices) {
		c.Want("a", want("x"))
		know(t, c, Present, "x", "before")
		lose(f)
		before := time.Now() // of the bubble, where only waiting takes time
		for range 100 {
			if _, presence := c.Get(id("x")); presence != Unknown {
				t.Fatalf("it is %s", presence)
			}
			c.Want("b", want("x"))
			c.Drop("b")
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("that took %s", took)
		}
	})
}
