package storehealth

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/penstock-project/penstock/pkg/store"
)

// RecordsCheckName is the name of the readiness check that fails, and names the record, while a
// record of the store is unreadable. A kubelet's probe should exclude it like the store's other
// checks: only the extension of the record is affected.
const RecordsCheckName = "store-records"

// recordsPatience bounds the check whether such records still exist.
const recordsPatience = 2 * time.Second

// RecordsCheck is that readiness check.
func RecordsCheck(unreadable *store.Unreadable) healthz.HealthChecker {
	return healthz.NamedCheck(RecordsCheckName, func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), recordsPatience)
		defer cancel()
		return unreadable.Check(ctx)
	})
}

// UnreadableByKind returns the numbers of unreadable records by kind. prefix is the store's prefix
// in etcd.
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
