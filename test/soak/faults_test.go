//go:build integration

package soak

import (
	"os"
	"testing"
	"time"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

// TestFaults runs three replicas on three members of etcd, with the faults in FAULTS.
func TestFaults(t *testing.T) {
	list := os.Getenv("FAULTS")
	if list == "" {
		t.Skip("it takes minutes: run it by `make test-slice N=faults FAULTS=all`")
	}
	faults, err := replicas.Parse(list)
	if err != nil {
		t.Fatalf("FAULTS: %v", err)
	}
	s := readSettings(t, 10*time.Minute)
	replicas.Start(t, cluster.Start(t), penstock.Build(t)).
		Campaign(t, replicas.Plan{Faults: faults, Duration: s.duration, Seed: s.seed, Timed: true})
}
