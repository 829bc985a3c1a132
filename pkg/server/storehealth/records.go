package storehealth

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/penstock-project/penstock/pkg/store"
)

// RecordsCheckName is the name of the readiness check that fails while a record of the
// store cannot be read, and names it. A kubelet's probe should leave it out, as the
// others of the store: everything that the record does not belong to goes on.
const RecordsCheckName = "store-records"

// recordsPatience bounds how long etcd is asked whether such records are still there.
const recordsPatience = 2 * time.Second

// RecordsCheck is that readiness check.
func RecordsCheck(unreadable *store.Unreadable) healthz.HealthChecker {
	return healthz.NamedCheck(RecordsCheckName, func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), recordsPatience)
		defer cancel()
		return unreadable.Check(ctx)
	})
}

// UnreadableByKind are the numbers of records that cannot be read, by kind; prefix is where
// the store is in etcd.
func UnreadableByKind(unreadable *store.Unreadable, prefix string) map[string]int {
	ctx, cancel := context.WithTimeout(context.Background(), recordsPatience)
	defer cancel()
	found, keys := map[string]int{}, store.NewKeys(prefix)
	for _, kind := range store.RecordKinds() {
		found[kind] = 0
	}
	for _, record := range unreadable.List(ctx) {
		found[keys.KindOf(record.Key)]++
	}
	return found
}
