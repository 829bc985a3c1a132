package fsck

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/references"
)

// Extension holds the stored size of one extension.
type Extension struct {
	Name string `json:"name"`
	// Revisions is the number of revisions.
	Revisions int `json:"revisions"`
	// Bytes is the size of all its records with their keys, without etcd's history. A pack of
	// several extensions counts for one of them.
	Bytes int64 `json:"bytes"`
}

// sizes adds up the stored sizes of extensions.
type sizes struct {
	byName map[string]*Extension
	// packs holds the sizes of packs by root.
	packs map[string]int64
}

func newSizes() *sizes { return &sizes{byName: map[string]*Extension{}, packs: map[string]int64{}} }

func (s *sizes) of(name string) *Extension {
	if s.byName[name] == nil {
		s.byName[name] = &Extension{Name: name}
	}
	return s.byName[name]
}

// record adds a record that is no pack.
func (s *sizes) record(keys store.Keys, kv *mvccpb.KeyValue) {
	name, ok := extensionOf(keys, string(kv.Key))
	if !ok {
		return
	}
	extension := s.of(name)
	extension.Bytes += int64(len(kv.Key) + len(kv.Value))
	if keys.KindOf(string(kv.Key)) == revisions {
		extension.Revisions++
	}
}

// revisions is the kind of the records of revisions.
const revisions = "clusterextensionrevisions"

// extensionOf returns the extension of a record, from its key.
func extensionOf(keys store.Keys, key string) (string, bool) {
	if rest, ok := strings.CutPrefix(key, keys.Chains()); ok {
		escaped, _, _ := strings.Cut(rest, "/")
		name, err := url.PathUnescape(escaped)
		return name, err == nil
	}
	if keys.KindOf(key) != revisions {
		return "", false
	}
	name := key[strings.LastIndexByte(key, '/')+1:]
	end := strings.LastIndexByte(name, '-')
	return name[:max(0, end)], end > 0
}

// attribute adds packs to the extensions whose revisions list them. A base that no revision lists
// is added to an extension that needs it.
func (s *sizes) attribute(keys store.Keys, packs []references.Pack, referred references.Set) {
	owner := func(root string) string {
		for _, key := range referred[root] {
			if name, ok := extensionOf(keys, key); ok {
				return name
			}
		}
		return ""
	}
	needed := map[string]string{}
	for _, one := range packs {
		if name := owner(one.Root); name != "" && one.Base != "" {
			needed[one.Base] = name
		}
	}
	for _, one := range packs {
		if name := cmp.Or(owner(one.Root), needed[one.Root]); name != "" {
			s.of(name).Bytes += s.packs[one.Root]
		}
	}
}

// extensions returns all extensions, largest first.
func (s *sizes) extensions() []Extension {
	all := []Extension{}
	for _, one := range s.byName {
		all = append(all, *one)
	}
	slices.SortFunc(all, func(a, b Extension) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}
