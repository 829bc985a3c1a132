// Package upgrades finds when upgrades may begin.
package upgrades

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
)

// Window returns whether an upgrade of a ClusterExtension could begin now by itself. It returns nil
// if that is unknown: the user cannot read windows, or there is no ClusterExtension.
func Window(ctx context.Context, host dynamic.Interface, name string) *maintenancewindow.Decision {
	found, err := host.Resource(maintenancewindow.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	asked, err := host.Resource(extension.Resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	decision := maintenancewindow.Decide(maintenancewindow.NewAll(found.Items), asked.GetLabels(), time.Now())
	return &decision
}
