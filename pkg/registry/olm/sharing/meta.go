package sharing

import (
	"hash/maphash"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/apis/olm"
)

// shareFields makes the fields of managers one piece of memory with equal ones. Whoever
// sends revisions in one form has the same fields in all of them. Nobody writes to what was
// decoded: a manager that changes gets fields of its own.
func (e *Entries) shareFields(managers []metav1.ManagedFieldsEntry) {
	for i := range managers {
		fields := managers[i].FieldsV1
		if fields == nil {
			continue
		}
		key := maphash.Bytes(e.seed, fields.GetRawBytes())
		if held := e.fields.get(key); len(held) == 1 && held[0].Equal(*fields) {
			managers[i].FieldsV1 = &held[0]
			continue
		}
		fresh := []metav1.FieldsV1{*fields}
		e.fields.put(key, fresh)
		managers[i].FieldsV1 = &fresh[0]
	}
}

// shareRequester returns an equal requester that somebody has already, or else this one.
// Who asked for a revision is stamped by the server and never changes.
func (e *Entries) shareRequester(requester *olm.Requester) *olm.Requester {
	if requester == nil {
		return nil
	}
	key := e.hashRequester(requester)
	if held := e.requesters.get(key); len(held) == 1 && equalRequesters(&held[0], requester) {
		return &held[0]
	}
	fresh := []olm.Requester{*requester}
	e.requesters.put(key, fresh)
	return &fresh[0]
}

func (e *Entries) hashRequester(requester *olm.Requester) uint64 {
	var h maphash.Hash
	h.SetSeed(e.seed)
	for _, word := range append([]string{requester.Username, requester.UID}, requester.Groups...) {
		maphash.WriteComparable(&h, word)
	}
	sum := h.Sum64()
	for name, values := range requester.Extra {
		// In no order.
		sum ^= maphash.String(e.seed, name)
		for i, value := range values {
			sum ^= maphash.Comparable(e.seed, extraWord{name, i, value})
		}
	}
	return sum
}

// extraWord is a value of an extra key, with its place among the values.
type extraWord struct {
	name  string
	place int
	value string
}

func equalRequesters(a, b *olm.Requester) bool {
	return a.Username == b.Username && a.UID == b.UID && sameList(a.Groups, b.Groups) &&
		(a.Extra == nil) == (b.Extra == nil) && maps.EqualFunc(a.Extra, b.Extra, sameList[olm.ExtraValue])
}

// sameList tells a list that is absent from an empty one.
func sameList[L ~[]string](a, b L) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }
