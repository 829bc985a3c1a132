package screens

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/text"
)

// Packages holds the packages of the cluster's catalogs.
type Packages struct {
	// Asked is the time of the answer, in RFC 3339.
	Asked    string       `json:"asked"`
	Packages []PackageRow `json:"packages"`
	Catalogs []CatalogRow `json:"catalogs"`
	// Hidden is the reason why the catalogs are not shown, or nil.
	Hidden *Refusal `json:"hidden,omitempty"`
	// Warnings are the cluster's warnings about catalogs that cannot be read and packages that are
	// left out.
	Warnings []string `json:"warnings,omitempty"`
}

// PackageRow is one package.
type PackageRow struct {
	Name        string `json:"name"`
	Catalog     string `json:"catalog"`
	Description string `json:"description,omitempty"`
	Channel     string `json:"channel,omitempty"`
	// Latest is the latest version of the default channel. Elsewhere is a higher version, with its
	// channels.
	Latest    string `json:"latest,omitempty"`
	Elsewhere string `json:"elsewhere,omitempty"`
	// Installed lists the installed versions, each with the name of its extension.
	Installed string `json:"installed,omitempty"`
	// Deprecated is the catalog's message about a deprecated package.
	Deprecated string `json:"deprecated,omitempty"`
	// Kinds lists the package's kinds, shortened, for a search.
	Kinds string `json:"kinds,omitempty"`
	// Named is false if no extension can request the package by its name.
	Named bool `json:"named"`
}

// CatalogRow is one ClusterCatalog.
type CatalogRow struct {
	Name   string `json:"name"`
	Signal Signal `json:"signal"`
	// State is a reason of the API, or Off.
	State string `json:"state"`
	// Message describes the problem, empty without one.
	Message  string `json:"message,omitempty"`
	Priority int32  `json:"priority"`
	// Since is the time when the content was last unpacked, in RFC 3339.
	Since string `json:"since,omitempty"`
}

// Package is a package with the possible actions.
type Package struct {
	Asked string `json:"asked"`
	// Package is from the catalog with the highest priority.
	Package *v1alpha1.CatalogPackage `json:"package"`
	// Latest is the latest version of the default channel. Elsewhere is a higher version, with its
	// channels.
	Latest    string `json:"latest,omitempty"`
	Elsewhere string `json:"elsewhere,omitempty"`
	// Channel is the channel from which an installation takes versions by default.
	Channel string `json:"channel,omitempty"`
	// Taken is an existing revision with the name of the package, so that an extension cannot have
	// that name. It is empty if there is none, or if the user cannot see it.
	Taken string `json:"taken,omitempty"`
	// Kinds lists the package's kinds as KIND.GROUP.
	Kinds []string `json:"kinds,omitempty"`
	// Upgrades are the upgrades of extensions that use the package. Hidden is the reason why they
	// are not shown.
	Upgrades []v1alpha1.ExtensionUpgrades `json:"upgrades,omitempty"`
	Hidden   *Refusal                     `json:"hidden,omitempty"`
}

const maxKinds = 300

// packages reads packages and catalogs at the same time. If the catalogs are refused, it still
// returns packages.
func (a *API) packages(ctx context.Context, _ *http.Request) (any, error) {
	now := metav1.Now()
	out := Packages{Asked: when(&now), Packages: []PackageRow{}, Catalogs: []CatalogRow{}}
	var both sync.WaitGroup
	both.Go(func() { out.Catalogs, out.Hidden = a.catalogs(ctx) })
	heard := &warnings{}
	listed, err := a.penstock.CatalogV1alpha1().CatalogPackages().List(heard.in(ctx), metav1.ListOptions{})
	both.Wait()
	if err != nil {
		return nil, err
	}
	for i := range listed.Items {
		out.Packages = append(out.Packages, packageRow(&listed.Items[i]))
	}
	out.Warnings = heard.all()
	return out, nil
}

func packageRow(p *v1alpha1.CatalogPackage) PackageRow {
	row := PackageRow{
		Name: p.Name, Catalog: p.Catalog, Description: p.Description, Channel: p.DefaultChannel,
		Kinds: text.Line(strings.Join(install.Kinds(p), " "), maxKinds), Named: len(validation.IsDNS1123Subdomain(p.Name)) == 0,
	}
	if p.Deprecation != nil {
		row.Deprecated = text.Line(p.Deprecation.Message, maxRowMessage)
	}
	row.Latest, row.Elsewhere = install.Latest(p)
	var installed []string
	for _, one := range p.Installed {
		installed = append(installed, one.Version+" as "+one.Extension)
	}
	slices.Sort(installed)
	row.Installed = text.Line(strings.Join(installed, ", "), maxRowMessage)
	return row
}

// catalogs reads the ClusterCatalogs. The list is empty if the cluster lacks the kind.
func (a *API) catalogs(ctx context.Context) ([]CatalogRow, *Refusal) {
	rows := []CatalogRow{}
	listed, err := a.host.Resource(clustercatalog.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		refusal := refusalOf(err)
		return rows, &refusal
	}
	for i := range listed.Items {
		read, err := clustercatalog.From(&listed.Items[i])
		if err != nil {
			rows = append(rows, CatalogRow{Name: listed.Items[i].GetName(), Signal: NeedsAttention, State: "Unreadable", Message: text.Line(err.Error(), maxRowMessage)})
			continue
		}
		rows = append(rows, catalogRow(read))
	}
	slices.SortFunc(rows, func(a, b CatalogRow) int { return strings.Compare(a.Name, b.Name) })
	return rows, nil
}

func catalogRow(read *clustercatalog.Catalog) CatalogRow {
	row := CatalogRow{Name: read.Name, Priority: read.Spec.Priority, Since: when(read.Status.LastUnpacked)}
	serving := meta.FindStatusCondition(read.Status.Conditions, clustercatalog.Serving)
	progressing := meta.FindStatusCondition(read.Status.Conditions, clustercatalog.Progressing)
	tried := progressing != nil && progressing.Reason != clustercatalog.ReasonSucceeded
	switch {
	case read.Off():
		row.Signal, row.State = Stopped, "Off"
	case tried:
		// Served content, if any, is then older.
		row.Signal, row.State, row.Message = NeedsAttention, progressing.Reason, text.Line(progressing.Message, 2*maxRowMessage)
	case serving == nil:
		row.Signal, row.State = InProgress, "Pending"
	case serving.Status == metav1.ConditionTrue:
		row.Signal, row.State = Healthy, "Serving"
	default:
		row.Signal, row.State, row.Message = NeedsAttention, serving.Reason, text.Line(serving.Message, 2*maxRowMessage)
	}
	return row
}

func (a *API) onePackage(ctx context.Context, r *http.Request) (any, error) {
	now := metav1.Now()
	out := Package{Asked: when(&now)}
	api := a.penstock.CatalogV1alpha1().CatalogPackages()
	var all sync.WaitGroup
	var asking *v1alpha1.CatalogPackageUpgrades
	var hidden error
	all.Go(func() { asking, hidden = api.GetUpgrades(ctx, r.PathValue("name"), metav1.GetOptions{}) })
	all.Go(func() {
		if revisions, err := a.named(ctx, r.PathValue("name")); err == nil && len(revisions) > 0 {
			newest := slices.MaxFunc(revisions, func(a, b olmv1alpha1.ClusterExtensionRevision) int {
				return cmp.Compare(a.Spec.Revision, b.Spec.Revision)
			})
			out.Taken = newest.Name
		}
	})
	found, err := api.Get(ctx, r.PathValue("name"), metav1.GetOptions{})
	all.Wait()
	if err != nil {
		return nil, err
	}
	out.Package, out.Kinds = found, install.Kinds(found)
	out.Latest, out.Elsewhere = install.Latest(found)
	out.Channel = install.DefaultChannel(found)
	found.ManagedFields, found.Kinds = nil, nil
	if hidden != nil {
		refusal := refusalOf(hidden)
		out.Hidden = &refusal
	} else {
		out.Upgrades = asking.Extensions
	}
	return out, nil
}

func (a *API) graph(ctx context.Context, r *http.Request) (any, error) {
	request := a.penstock.CatalogV1alpha1().RESTClient().Get().Resource("catalogpackages").Name(r.PathValue("name")).SubResource("graph")
	if channel := r.URL.Query().Get("channel"); channel != "" {
		request.Param("channel", channel)
	}
	read := &v1alpha1.CatalogPackageGraph{}
	if err := request.Do(ctx).Into(read); err != nil {
		return nil, err
	}
	return read, nil
}

// warnings collects the cluster's warnings in its answers.
type warnings struct {
	mu   sync.Mutex
	said []string
}

type warningsKey struct{}

// in returns a context whose requests add their warnings here.
func (w *warnings) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, warningsKey{}, w)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

// gatherer passes warnings to the collector in the context. Without a collector, it drops them.
type gatherer struct{}

const codeMiscellaneous = 299

const maxWarnings = 20

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (gatherer) HandleWarningHeaderWithContext(ctx context.Context, code int, _, said string) {
	w, gathers := ctx.Value(warningsKey{}).(*warnings)
	if !gathers || code != codeMiscellaneous || said == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.said) < maxWarnings {
		w.said = append(w.said, text.Clip(said, maxMessage))
	}
}
