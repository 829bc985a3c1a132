package store

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeys(t *testing.T) {
	k := NewKeys("penstock/")
	got := map[string]string{
		"all":       k.All(),
		"identity":  k.Identity(),
		"target":    k.Target(),
		"pack":      k.Pack("sha256:ab"),
		"chunk":     k.Chunk("sha256:ab", "cd"),
		"head":      k.Head("argocd"),
		"inventory": k.Inventory("argocd"),
		"claim":     k.Claim("profile/a"),
		"candidate": k.Candidate("sha256:ab"),
		"reserved":  k.Reservation("sha256:ab", 0xcd),
		"collector": k.Collector(),
	}
	want := map[string]string{
		"all":       "/penstock/",
		"identity":  "/penstock/identity",
		"target":    "/penstock/target",
		"pack":      "/penstock/packs/sha256:ab/pack",
		"chunk":     "/penstock/packs/sha256:ab/chunks/cd",
		"head":      "/penstock/chains/argocd/head",
		"inventory": "/penstock/chains/argocd/inventory",
		"claim":     "/penstock/claims/profile%2Fa",
		"candidate": "/penstock/packs/sha256:ab/candidate",
		"reserved":  "/penstock/packs/sha256:ab/reserved/cd",
		"collector": "/penstock/collector",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the layout is part of the stored format: a change needs a migration (-want +got):\n%s", diff)
	}
}

func TestPackRoot(t *testing.T) {
	k := NewKeys("/penstock")
	cases := map[string]struct {
		reason string
		key    string
		root   string
		ok     bool
	}{
		"Pack":    {reason: "its own key names it", key: k.Pack("sha256:ab"), root: "sha256:ab", ok: true},
		"Escaped": {reason: "what Pack escapes is unescaped", key: k.Pack("a/b"), root: "a/b", ok: true},
		"Chunk":   {reason: "a chunk alone makes no pack", key: k.Chunk("sha256:ab", "cd")},
		"Tricky":  {reason: "a chunk named pack is a chunk", key: k.Chunk("sha256:ab", "pack")},
		"Other":   {reason: "another record", key: k.Head("pack")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root, ok := k.PackRoot(tc.key)
			if root != tc.root && tc.ok || ok != tc.ok {
				t.Errorf("%s: got %q, %v, want %q, %v", tc.reason, root, ok, tc.root, tc.ok)
			}
		})
	}
}

func TestPackPartOf(t *testing.T) {
	k := NewKeys("/penstock")
	const root = "sha256:ab"
	for key, want := range map[string]PackPart{
		k.Pack(root):                       {Root: root, Name: "pack"},
		k.Chunk(root, "cd"):                {Root: root, Name: "chunks", Of: "cd"},
		k.Candidate(root):                  {Root: root, Name: "candidate"},
		k.Reservation(root, 0xcd):          {Root: root, Name: "reserved", Of: "cd"},
		k.Head("pack"):                     {},
		k.PackRecords(root) + "other":      {},
		k.PackRecords(root) + "pack/pack":  {},
		k.PackRecords(root) + "chunks":     {},
		k.PackRecords(root) + "chunks/a/b": {},
		NewKeys("/other").Candidate(root):  {},
		k.Packs() + "%zz/pack":             {},
	} {
		if got, ok := k.PackPartOf(key); ok != (want != PackPart{}) || ok && got != want {
			t.Errorf("%s: got %+v, %t, want %+v", key, got, ok, want)
		}
	}
}

func TestInventoryOf(t *testing.T) {
	k := NewKeys("/penstock")
	cases := map[string]struct {
		reason string
		key    string
		chain  string
		ok     bool
	}{
		"Inventory": {reason: "its own key names it", key: k.Inventory("argocd"), chain: "argocd", ok: true},
		"Escaped":   {reason: "what Inventory escapes is unescaped", key: k.Inventory("a/inventory"), chain: "a/inventory", ok: true},
		"Head":      {reason: "another record of the chain", key: k.Head("inventory")},
		"Other":     {reason: "another store", key: NewKeys("/other").Inventory("argocd")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if chain, ok := k.InventoryOf(tc.key); chain != tc.chain || ok != tc.ok {
				t.Errorf("%s: got %q, %v, want %q, %v", tc.reason, chain, ok, tc.chain, tc.ok)
			}
		})
	}
}

// FuzzKeysStayApart: no name can form the key of another record.
func FuzzKeysStayApart(f *testing.F) {
	f.Add("a", "b/head")
	f.Add("a/../b", "b")
	f.Add("%2F", "/")
	f.Fuzz(func(t *testing.T, a, b string) {
		k := NewKeys("/p")
		if a != b && (k.Head(a) == k.Head(b) || k.Claim(a) == k.Claim(b) || k.Pack(a) == k.Pack(b)) {
			t.Errorf("%q and %q share a key", a, b)
		}
		if k.Head(a) == k.Inventory(b) {
			t.Errorf("the head of %q is the inventory of %q", a, b)
		}
		if strings.Count(k.Head(a), "/") != 4 {
			t.Errorf("the name %q adds levels: %s", a, k.Head(a))
		}
	})
}
