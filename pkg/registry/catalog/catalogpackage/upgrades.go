package catalogpackage

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/upgrades"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/resolve"
	"github.com/penstock-project/penstock/pkg/text"
)

// Asked is a ClusterExtension that asks for a package. Installed is its installed bundle of the
// package, or nil.
type Asked struct {
	Extension *extension.Extension
	Installed *resolve.Installed
	// Cluster is the version of the extension's cluster. If it is nil, NoCluster is the reason.
	Cluster   *clusterversion.Kubernetes
	NoCluster string
}

// Asking returns the ClusterExtensions that ask for a package, sorted by name. It omits extensions
// and revisions that the caller must not know.
type Asking func(ctx context.Context, name string) ([]Asked, error)

// approvalAutomatic is the approval of an extension without the annotation.
const approvalAutomatic = "Automatic"

// UpgradesREST serves the subresource upgrades: the possible upgrades of a package's extensions.
// Extensions select catalogs themselves, so the package need not be in any catalog.
type UpgradesREST struct {
	catalogs endpoint
	asking   Asking
	upgradesTable
}

var (
	_ rest.GetterWithOptions = &UpgradesREST{}
	_ rest.TableConvertor    = &UpgradesREST{}
)

// NewUpgrades returns the endpoint.
func NewUpgrades(catalogs Inventory, asking Asking) *UpgradesREST {
	return &UpgradesREST{catalogs: endpoint{catalogs: catalogs}, asking: asking}
}

// New returns an empty list.
func (*UpgradesREST) New() runtime.Object { return &v1alpha1.CatalogPackageUpgrades{} }

// Destroy does nothing.
func (*UpgradesREST) Destroy() {}

// NewGetOptions returns the query parameters. The subresource has no subpath.
func (r *UpgradesREST) NewGetOptions() (runtime.Object, bool, string) {
	return r.catalogs.NewGetOptions()
}

// Get returns the possible upgrades of a package's extensions, by their own specs or by the
// requested range.
func (r *UpgradesREST) Get(ctx context.Context, name string, options runtime.Object) (runtime.Object, error) {
	query, err := optionsOf(options, "version")
	if err != nil {
		return nil, err
	}
	if len(query.Version) > 1 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("version is given %d times: want one range", len(query.Version)))
	}
	at, err := r.catalogs.known()
	if err != nil {
		return nil, err
	}
	asked, err := r.asking(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(asked) == 0 && len(at.Offers(name)) == 0 {
		return nil, notFound(at, name)
	}
	out := &v1alpha1.CatalogPackageUpgrades{ObjectMeta: metav1.ObjectMeta{Name: name}, Extensions: []v1alpha1.ExtensionUpgrades{}}
	if len(asked) == 0 {
		return out, nil
	}
	catalogs := at.ForResolver(name)
	for _, one := range asked {
		source := *one.Extension.Spec.Source.Catalog
		if len(query.Version) > 0 {
			source.Version = query.Version[0]
		}
		out.Extensions = append(out.Extensions, rowOf(one, source, catalogs))
	}
	return out, nil
}

func rowOf(asked Asked, source extension.Catalog, catalogs []resolve.Catalog) v1alpha1.ExtensionUpgrades {
	row := v1alpha1.ExtensionUpgrades{
		Extension: asked.Extension.Name, Approval: word(cmp.Or(asked.Extension.Annotations[extension.ApprovalAnnotation], approvalAutomatic)),
	}
	if asked.Installed != nil {
		row.Installed = word(asked.Installed.Version)
	}
	request := upgrades.Request(source, asked.Installed)
	request.Cluster = asked.Cluster
	found, err := upgrades.Of(request, catalogs)
	if err != nil {
		row.Message = text.Line(err.Error(), longestMessage)
		return row
	}
	row.Allowed, row.Channel, row.Catalog, row.Newest = word(found.Allowed), word(found.AllowedChannel), word(found.AllowedCatalog), word(found.Newest)
	row.Omitted, row.Message = int32(found.BlockedMore), cmp.Or(found.None, uncertain(asked, found), stalled(asked.Extension))
	for _, one := range found.Blocked {
		row.Blocked = append(row.Blocked, v1alpha1.BlockedVersion{Version: word(one.Version), Catalog: word(one.Catalog), Cause: string(one.Cause), Message: one.Why})
	}
	return row
}

// uncertain returns a note that the allowed version may need a newer cluster.
func uncertain(asked Asked, found *upgrades.Upgrades) string {
	if asked.Cluster != nil || !found.Comes() || found.AllowedNeeds == "" {
		return ""
	}
	return text.Line(fmt.Sprintf("%s needs Kubernetes %s or later, and the version of the cluster is not known here: %s", found.Allowed, found.AllowedNeeds, asked.NoCluster), longestMessage)
}

// stalled returns the reason why an extension waits for a user, such as a hold after a rollback. It
// returns "" if its current spec does not wait.
func stalled(of *extension.Extension) string {
	found := meta.FindStatusCondition(of.Status.Conditions, status.Stalled)
	if found == nil || found.Status != metav1.ConditionTrue || found.ObservedGeneration != of.Generation {
		return ""
	}
	return text.Line(found.Reason+": "+found.Message, longestMessage)
}

type upgradesTable struct{}

// ConvertToTable prints one row for each extension.
func (upgradesTable) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	found, ok := object.(*v1alpha1.CatalogPackageUpgrades)
	if !ok {
		return nil, fmt.Errorf("printing a table of upgrades: got a %T", object)
	}
	out := &metav1.Table{}
	for _, one := range found.Extensions {
		blocked := text.Clip(one.Message, messageCell)
		if blocked == "" && len(one.Blocked) > 0 {
			blocked = text.Clip(one.Blocked[0].Version+" "+one.Blocked[0].Message, messageCell)
		}
		out.Rows = append(out.Rows, printing.Row([]any{
			one.Extension, one.Installed, one.Allowed, one.Approval, one.Newest, blocked,
		}, &v1alpha1.CatalogPackageUpgrades{ObjectMeta: metav1.ObjectMeta{Name: found.Name}}))
	}
	return printing.Headed(out, options, []metav1.TableColumnDefinition{
		{Name: "Extension", Type: "string", Description: "The ClusterExtension."},
		{Name: "Installed", Type: "string", Description: "Version that is installed."},
		{Name: "Allowed", Type: "string", Description: "Version that its spec allows now."},
		{Name: "Approval", Type: "string", Description: "Whether an upgrade waits for an approval."},
		{Name: "Newest", Type: "string", Description: "Highest version in the channels and catalogs that it asks for."},
		{Name: "Blocked", Type: "string", Description: "The newest version that is blocked, and why."},
	}), nil
}
