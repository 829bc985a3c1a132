package catalogpackage

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	"github.com/penstock-project/penstock/pkg/registry/printing"
	"github.com/penstock-project/penstock/pkg/text"
)

type table struct{}

// These limits are in bytes: a row must fit into a line. -o yaml shows the omitted parts.
const (
	listCell        = 40
	descriptionCell = 80
	messageCell     = 100
)

func columns() []metav1.TableColumnDefinition {
	return []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the package."},
		{Name: "Catalog", Type: "string", Description: "Catalog that the package is from: if several have it, the one with the highest priority."},
		{Name: "Channels", Type: "string", Description: "Channels that can be chosen."},
		{Name: "Default", Type: "string", Description: "Channel that is followed when none is chosen."},
		{Name: "Latest", Type: "string", Description: "Version that is installed when nothing is asked for."},
		{Name: "Installed", Type: "string", Description: "Versions that are installed. Empty if you cannot list clusterextensionrevisions."},
		{Name: "Description", Type: "string", Description: "Description of the package."},
		{Name: "Versions", Type: "integer", Priority: 1, Description: "How many versions there are."},
		{Name: "Deprecated", Type: "string", Priority: 1, Description: "Why the package should not be used, as the catalog says."},
		{Name: "Other catalogs", Type: "string", Priority: 1, Description: "Other catalogs that have the package."},
	}
}

// ConvertToTable prints a package or a list of packages.
func (table) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	return printing.Table("packages", object, options, columns(), func(one *v1alpha1.CatalogPackage) []any {
		var channels, installed, others []string
		for _, channel := range one.Channels {
			channels = append(channels, channel.Name)
		}
		for _, version := range one.Installed {
			installed = append(installed, version.Version)
		}
		for _, other := range one.Catalogs {
			if other.Name != one.Catalog {
				others = append(others, other.Name)
			}
		}
		return []any{
			one.Name, one.Catalog, cell(channels), one.DefaultChannel, one.Latest, cell(installed), text.Clip(one.Description, descriptionCell),
			int64(one.VersionCount), deprecated(one.Deprecation), cell(others),
		}
	})
}

// cell returns a short text for a list, such as "alpha,beta and 7 more". It contains at least the
// first element.
func cell(words []string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 && b.Len()+1+len(word) > listCell {
			return fmt.Sprintf("%s and %d more", b.String(), len(words)-i)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text.Line(word, messageCell))
	}
	return b.String()
}

func deprecated(one *v1alpha1.Deprecation) string {
	if one == nil {
		return ""
	}
	return text.Clip(one.Message, messageCell)
}
