//go:build integration

package server_test

import (
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

// TestReplicasUnderFaults is a short version of `make test-slice N=faults FAULTS=all`. Three
// replicas on three members of etcd lose a member and the leader, and the next leader is updated,
// while clients write. No acknowledged write is lost or executed twice, and no request fails by the
// update.
func TestReplicasUnderFaults(t *testing.T) {
	t.Parallel()
	replicas.Start(t, cluster.Start(t), penstock.Build(t)).
		Campaign(t, replicas.Plan{Faults: []string{"kill-etcd", "kill-leader", "roll"}, Seed: 1, Short: true})
}
