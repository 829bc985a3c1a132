//go:build integration

package smoke_test

import (
	"os"
	"path/filepath"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// plan: Penstock computes a change to an object that another operator owns. A user reads it,
// approves it by its hash, and undoes it in the same way.
func plan(s scenario) {
	root, err := plane.Root()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, file := range []string{"definitions.yaml", "cluster.yaml", "plan-without-reboots.yaml"} {
		content, err := os.ReadFile(filepath.Join(root, "artifacts", "examples", "rebalancing", file))
		if err != nil {
			s.t.Fatal(err)
		}
		s.Apply(string(content))
	}
	const descheduler = "kubedescheduler/cluster"
	there := s.At("openshift-kube-descheduler-operator")
	interval := func(want string) {
		s.t.Helper()
		there.Is(descheduler, ".spec.deschedulingIntervalSeconds", want)
	}

	// Review: nothing changes before a user has read and approved the plan.
	s.Becomes("configplan/rebalance", ".status.phase", "ReviewRequired")
	s.Says(s.types(0, "plan show rebalance"), "ReviewRequired", "configure-descheduler", "takes .spec.deschedulingIntervalSeconds", "from tester", "-  - LongLifecycle", "hash sha256:")
	interval("3600")
	s.Says(s.runs(2, "plan approve rebalance"), "--hash is required")
	s.Says(s.runs(3, "plan approve rebalance --hash sha256:0"), "read it again")

	// Run, with the rights of the profile's ServiceAccount.
	s.Says(s.types(0, s.command("Of plans", "ReviewRequired")+" --comment CHG-4711 --wait"), "Approve plan rebalance", "✓ configure-descheduler", "rebalance: Completed")
	s.Is("configplan/rebalance", ".status.phase", "Completed")
	interval("60")
	s.Says(there.JSON(descheduler), "hco.kubevirt.io/governed-by")

	// Penstock reports drift, and waits for a decision.
	there.PatchAs("mallory", descheduler, `{"spec":{"deschedulingIntervalSeconds":900}}`)
	s.Becomes("configplan/rebalance", ".status.phase", "Drifted")
	interval("900")
	there.PatchAs("mallory", descheduler, `{"spec":{"deschedulingIntervalSeconds":60}}`)
	s.Becomes("configplan/rebalance", ".status.phase", "Completed")

	there.PatchAs("mallory", descheduler, `{"spec":{"deschedulingIntervalSeconds":900}}`)
	s.Becomes("configplan/rebalance", ".status.phase", "Drifted")
	s.Says(s.types(0, s.command("Of plans", "ConfigurationDrifted")), "✓ configure-descheduler", "rebalance: Completed")
	interval("60")

	// An undo is a plan too, and needs a review.
	s.runs(0, "plan undo rebalance --run 1")
	s.Becomes("configplan/rebalance", ".status.phase", "ReviewRequired")
	s.Is("configplan/rebalance", ".status.items[*].name", "restore-configure-descheduler")
	s.Says(s.types(0, "plan approve rebalance --wait"), "rebalance: Completed")
	interval("3600")
	there.Is(descheduler, ".spec.profiles", `["AffinityAndTaints","LongLifecycle"]`)
}
