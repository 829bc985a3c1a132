package screens

import (
	"context"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client/install"
	"github.com/penstock-project/penstock/pkg/extension"
)

// InstallRequest is a request for a ClusterExtension of a package, as the screen showed the
// package.
type InstallRequest struct {
	// Latest is the latest version on the screen. If it differs now, the request is refused.
	Latest    string `json:"latest"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Version is a range; empty means the highest version.
	Version string `json:"version,omitempty"`
	// Channel is the only channel to take versions from; empty means any channel.
	Channel string `json:"channel,omitempty"`
	// ServiceAccount is the account whose rights install later versions.
	ServiceAccount string `json:"serviceAccount,omitempty"`
	// AtOnce installs later versions without approval.
	AtOnce bool `json:"atOnce,omitempty"`
	// DryRun only returns the effect of the request.
	DryRun bool `json:"dryRun,omitempty"`
}

// Installation holds the objects that are, or would be, written for a request.
type Installation struct {
	Name string `json:"name"`
	// Written is the ClusterExtension, as YAML.
	Written string `json:"written"`
	// Version is the version that would be installed now, if the package shows it; empty for a
	// range.
	Version string `json:"version,omitempty"`
	// Refused is the reason why nothing would be installed; empty if no reason is known. Free is an
	// unused name. It is set when the requested name is taken.
	Refused string `json:"refused,omitempty"`
	Free    string `json:"free,omitempty"`
	// Notes are facts to know before the installation. Warnings are the warnings of the cluster.
	Notes    []string `json:"notes,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// install creates a ClusterExtension as the user; a dry run only returns it.
func (a *API) install(ctx context.Context, r *http.Request) (any, error) {
	asked, err := read[InstallRequest](r)
	if err != nil {
		return nil, err
	}
	approval := extension.ApprovalManual
	if asked.AtOnce {
		approval = extension.ApprovalReviewed
	}
	wanted := install.Request{
		Package: r.PathValue("name"), Name: asked.Name, Namespace: asked.Namespace, Version: asked.Version,
		Approval: approval, ServiceAccount: asked.ServiceAccount,
	}
	if asked.Channel != "" {
		wanted.Channels = []string{asked.Channel}
	}
	if err := wanted.Check(); err != nil {
		return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Body", Message: err.Error()}
	}
	// 1. The package must be unchanged since it was on the screen.
	offered, err := a.penstock.CatalogV1alpha1().CatalogPackages().Get(ctx, wanted.Package, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	if offered.Latest != asked.Latest {
		return nil, &Refusal{Status: http.StatusConflict, Reason: ReasonChanged, Message: fmt.Sprintf("the latest version of %s is now %s, and was %s: review it again", wanted.Package, offered.Latest, asked.Latest)}
	}
	// 2. The cluster checks the object, and stores it unless this is a dry run.
	object, err := wanted.Object()
	if err != nil {
		return nil, err
	}
	heard := &warnings{}
	options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(asked.DryRun)}
	if _, err := a.host.Resource(extension.Resource).Create(heard.in(ctx), object, options); apierrors.IsAlreadyExists(err) {
		message := fmt.Sprintf("ClusterExtension %s exists already: use another name", wanted.Name)
		if free := a.freeName(ctx, wanted); free != "" {
			message += "; " + free + " is free"
		}
		return nil, &Refusal{Status: http.StatusConflict, Reason: string(metav1.StatusReasonAlreadyExists), Message: message}
	} else if err != nil {
		return nil, err
	}
	written, err := yaml.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encoding ClusterExtension %s: %w", wanted.Name, err)
	}
	out := Installation{Name: wanted.Name, Written: string(written), Version: wanted.LeadsTo(offered), Warnings: heard.all()}
	if asked.DryRun {
		// 3. The answer lists known obstacles to the installation.
		if out.Notes, err = a.installNotes(ctx, offered, wanted); err != nil {
			return nil, err
		}
		out.Refused = wanted.Hindered(offered, out.Version)
		if revisions, err := a.named(ctx, wanted.Name); err != nil {
			out.Notes = append(out.Notes, fmt.Sprintf("whether the name %s is taken by revisions is not known: %v", wanted.Name, err))
		} else if taken := wanted.NameTaken(revisions); taken != "" && out.Refused == "" {
			out.Refused, out.Free = taken, a.freeName(ctx, wanted)
		}
	}
	return out, nil
}

func (a *API) named(ctx context.Context, name string) ([]olmv1alpha1.ClusterExtensionRevision, error) {
	listed, err := a.penstock.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, metav1.ListOptions{LabelSelector: olmv1alpha1.ChainLabel + "=" + name})
	if err != nil {
		return nil, err
	}
	return listed.Items, nil
}

// freeName returns a name from the package and its namespace. It is empty if the name is invalid or
// in use.
func (a *API) freeName(ctx context.Context, wanted install.Request) string {
	wanted.Name = wanted.Package + "-" + wanted.Namespace
	if wanted.Check() != nil {
		return ""
	}
	if _, err := a.host.Resource(extension.Resource).Get(ctx, wanted.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return ""
	}
	if revisions, err := a.named(ctx, wanted.Name); err != nil || len(revisions) > 0 {
		return ""
	}
	return wanted.Name
}

// namespaces is the resource of namespaces, which extensions are installed into.
var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// installNotes returns the facts to know before a package is installed.
func (a *API) installNotes(ctx context.Context, offered *v1alpha1.CatalogPackage, wanted install.Request) ([]string, error) {
	var notes []string
	for _, there := range offered.Installed {
		if there.Extension == wanted.Name && wanted.Approval != extension.ApprovalManual {
			notes = append(notes, install.InstalledAlready(there, wanted.Name))
		}
	}
	if latest, elsewhere := install.Latest(offered); elsewhere != "" && wanted.Version == "" && len(wanted.Channels) == 0 {
		notes = append(notes, fmt.Sprintf("%s is the highest version of any channel; the default channel %s has %s", offered.Latest, offered.DefaultChannel, latest))
	}
	version := wanted.LeadsTo(offered)
	for _, one := range offered.Versions {
		if one.Version == version && one.Deprecation != nil {
			notes = append(notes, fmt.Sprintf("%s should not be used: %s", version, one.Deprecation.Message))
		}
	}
	if _, err := a.host.Resource(namespaces).Get(ctx, wanted.Namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		notes = append(notes, fmt.Sprintf("there is no namespace %s: create it first", wanted.Namespace))
	}
	may, err := a.right(ctx, buttons()["createRevision"], "")
	if err != nil {
		return nil, err
	}
	if !may.Allowed {
		notes = append(notes, may.Missing+"; the revision is made in your name, and waits until you have it")
	}
	return notes, nil
}
