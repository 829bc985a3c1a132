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

// engineUser is in whose name objects of extensions are written.
const engineUser = "system:serviceaccount:penstock-system:penstock-engine"

// ownRights: in all that was done so far Penstock has lacked no right in its own
// name, and has written objects of extensions in the engine's name only.
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

// isGranted reports whether a request is for the token of a profile's identity, and its right was
// granted a moment before. The authorizer of kube-apiserver sees a new role by a watch, so Penstock
// asks again.
func isGranted(r plane.Request) bool {
	return strings.Contains(r.URI, "/serviceaccounts/penstock-profile-") && strings.HasSuffix(r.URI, "/token")
}
