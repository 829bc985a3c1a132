package gc

import (
	"context"
	"strconv"
	"strings"

	"github.com/penstock-project/penstock/pkg/store/references"
)

// A base without a revision is kept for its deltas, and takes as much space as five of them. As
// soon as the chain has a newer whole pack, the deltas become deltas against that pack.

// rebaseOnto compresses the deltas of an otherwise unreferenced base against the newest whole pack
// of their chain, if that saves enough. It returns the deltas that still need the base. After a
// base saved too little, this collector does not try it again.
func (c *Collector) rebaseOnto(ctx context.Context, s state, deltas []string, newest map[string]string) ([]string, error) {
	var left []string
	for _, root := range deltas {
		onto := newest[chainOf(s.referred[root])]
		if onto == "" || onto == s.packs[root].Base || c.tried[root] == onto || !s.kept[root] {
			left = append(left, root)
			continue
		}
		done, err := c.rebase.RebaseOnto(ctx, root, onto)
		if err != nil && !isDamage(err) {
			return nil, err
		}
		if !done {
			c.tried[root] = onto
			left = append(left, root)
			continue
		}
		// The new delta is about as large as the old delta.
		c.mayRebase -= s.packs[root].bytes
	}
	return left, nil
}

// newestWhole returns, by chain, the whole pack of the newest revision that has a whole pack.
func newestWhole(s state) map[string]string {
	newest, numbers := map[string]string{}, map[string]int64{}
	for root, keys := range s.referred {
		if one := s.packs[root]; one == nil || one.pack == 0 || one.Base != "" || len(one.chunks) > 0 {
			continue
		}
		for _, key := range keys {
			chain, number := revisionOf(key)
			if chain != "" && number > numbers[chain] {
				newest[chain], numbers[chain] = root, number
			}
		}
	}
	return newest
}

// chainOf returns the chain whose revisions alone refer to a pack. It returns "" if other records
// do, or may.
func chainOf(keys []string) string {
	if len(keys) == 0 || len(keys) >= references.MaxNamed {
		return ""
	}
	chain, _ := revisionOf(keys[0])
	for _, key := range keys {
		if other, _ := revisionOf(key); other != chain {
			return ""
		}
	}
	return chain
}

// revisionOf returns chain and number of a revision from its key, and "" for any other key.
func revisionOf(key string) (string, int64) {
	parent, name, _ := cutLast(key, "/")
	_, resource, _ := cutLast(parent, "/")
	chain, digits, found := cutLast(name, "-")
	number, err := strconv.ParseInt(digits, 10, 64)
	if !found || err != nil || resource != "clusterextensionrevisions" {
		return "", 0
	}
	return chain, number
}

func cutLast(s, separator string) (before, after string, found bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return "", s, false
	}
	return s[:at], s[at+len(separator):], true
}
