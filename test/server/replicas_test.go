//go:build integration

package server_test

import (
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

// TestReplicasUnderFaults is a short version of `make test-slice N=faults FAULTS=all`. Three
// replicas use three members of etcd, and clients write. A member and the leader fail, and the next
// leader is updated. No acknowledged write is lost or executed twice, and no request fails because
// of the update.
func TestReplicasUnderFaults(t *testing.T) {
	t.Parallel()
	replicas.Start(t, cluster.Start(t), penstock.Build(t)).
		Campaign(t, replicas.Plan{Faults: []string{"kill-etcd", "kill-leader", "roll"}, Seed: 1, Short: true})
}
