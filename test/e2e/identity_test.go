//go:build integration

package e2e_test

import (
	"slices"
	"strings"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/chartkind"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/metriccheck"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/plane"
)

// engineUser is the user who writes objects of extensions.
const engineUser = "system:serviceaccount:penstock-system:penstock-engine"

// ownRights: in all scenarios so far, Penstock's own user lacked no right. Only the engine's user
// wrote objects of extensions.
func ownRights(w sharedPlane) {
	own := w.Audit().Since(0, plane.ByUser(penstock.Username))
	if denied := own.Where(func(r plane.Request) bool { return r.Code == 403 && !isGranted(r) }); len(denied) > 0 {
		w.t.Errorf("requests of Penstock itself without a right:\n%s", denied)
	}
	for _, resource := range []string{"deployments", "services", "customresourcedefinitions", "clusterroles"} {
		written := func(user string) plane.Requests {
			return w.Audit().Since(0, plane.ByUser(user), plane.ByResource(resource), plane.Writes(), func(r plane.Request) bool {
				return r.Namespace != "penstock-system" && !slices.Contains([]string{"penstock-engine", "penstock-reader", "penstock-executor", "penstock-templates", clustercatalog.DefinitionName, extension.DefinitionName, chartkind.DefinitionName, maintenancewindow.DefinitionName, metriccheck.DefinitionName, extensionset.DefinitionName}, r.Name)
			})
		}
		if by := written(penstock.Username); len(by) > 0 {
			w.t.Errorf("Penstock has written %s in its own name:\n%s", resource, by)
		}
		if by := written(engineUser); len(by) == 0 {
			w.t.Errorf("the engine has written no %s: the test sees nothing", resource)
		}
	}
}

// isGranted reports whether a request gets a token of a profile's ServiceAccount. Its right was
// granted just before. kube-apiserver learns of the new role from a watch, so Penstock retries.
func isGranted(r plane.Request) bool {
	return strings.Contains(r.URI, "/serviceaccounts/penstock-profile-") && strings.HasSuffix(r.URI, "/token")
}
