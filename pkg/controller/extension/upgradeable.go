package extension

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/operatorcondition"
	"github.com/penstock-project/penstock/pkg/store/chain"
)

// Inventories returns the inventory of each chain.
type Inventories interface {
	Load(ctx context.Context, name string) (chain.Inventory, int64, error)
}

// Conditions reads the OperatorConditions in some namespaces of a target cluster. An empty target
// means the default one. It returns none if the cluster does not serve the kind.
type Conditions interface {
	OperatorConditions(ctx context.Context, target string, namespaces []string) ([]unstructured.Unstructured, error)
}

// notUpgradeable returns an outcome if an OperatorCondition of the extension holds an upgrade, or
// nil. The pass is retried after a delay, because no watch of OperatorConditions runs. Objects that
// Helm applied are in no inventory.
func (s *scope) notUpgradeable(ctx context.Context, identity maker.Identity) *maker.Outcome {
	if s.byHelm {
		return nil
	}
	if stopped := s.mayUse(ctx, identity.Who()); stopped != nil {
		return stopped
	}
	inventory, _, err := s.Inventories.Load(ctx, s.Name)
	if err != nil {
		return retry(status.Failed, err)
	}
	installed := operatorcondition.Installed{}
	for _, entry := range inventory.Entries {
		installed[entry.ID()] = entry.UID
	}
	found, err := s.Conditions.OperatorConditions(ctx, s.extension.Annotations[extension.TargetAnnotation], installed.Namespaces())
	if err != nil {
		return retry(status.Failed, fmt.Errorf("finding out whether the installed operator can be upgraded: %w", err))
	}
	var held []string
	for i := range found {
		if !installed.Owns(&found[i]) {
			continue
		}
		if why := operatorcondition.Holds(&found[i], s.Clock.Now()); why != "" {
			held = append(held, why)
		}
	}
	if len(held) == 0 {
		return nil
	}
	return stop(status.NotUpgradeable, strings.Join(held, "; "), "").Later()
}
