package check

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
)

// apiService has the needed fields of an APIService. Its full type is only in the aggregator's
// clients.
type apiService struct {
	Spec struct {
		CABundle []byte `json:"caBundle"`
		Service  *struct {
			Namespace, Name string
			Port            int
		} `json:"service"`
	} `json:"spec"`
	Status struct {
		Conditions []struct{ Type, Status, Reason, Message string } `json:"conditions"`
	} `json:"status"`
}

// served returns the group versions of Penstock, with a resource of each.
func served() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		v1alpha1.SchemeGroupVersion.WithResource("clusterextensionrevisions"),
		hcov1alpha1.SchemeGroupVersion.WithResource("configurationplans"),
		catalogv1alpha1.SchemeGroupVersion.WithResource("catalogpackages"),
	}
}

func nameOf(version schema.GroupVersion) string { return version.Version + "." + version.Group }

func (in *installation) cluster(ctx context.Context) Result {
	const name = "cluster"
	var found version.Info
	switch err := in.get(ctx, "/version", &found); {
	case apierrors.IsUnauthorized(err):
		return Result{name, Failed, "it does not know who you are: " + err.Error(), "sign in again, or use another context"}
	case apierrors.IsForbidden(err):
		return Result{name, OK, "it answers, but does not tell its version", ""}
	case err != nil:
		return Result{name, Failed, err.Error(), "check that the address in the kubeconfig is right, and that the cluster is up"}
	default:
		return Result{name, OK, "Kubernetes " + found.GitVersion, ""}
	}
}

// apiServices reports whether the cluster sends requests for our groups to Penstock.
func (in *installation) apiServices(ctx context.Context) []Result {
	var results []Result
	for _, resource := range served() {
		version := resource.GroupVersion()
		var found apiService
		err := in.get(ctx, "/apis/apiregistration.k8s.io/v1/apiservices/"+nameOf(version), &found)
		if err == nil {
			in.services[version.Group] = &found
		}
		result := judgeAPIService(found, err)
		result.Name = "apiservice " + nameOf(version)
		results = append(results, result)
	}
	return results
}

// notThere is Found for an APIService that does not exist.
const notThere = "it is not there"

func judgeAPIService(found apiService, err error) Result {
	switch {
	case apierrors.IsNotFound(err):
		return Result{"", Failed, notThere, "install Penstock, or start it with --register"}
	case err != nil:
		return missing(err)
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type != "Available" {
			continue
		}
		if condition.Status == "True" {
			return Result{"", OK, "the cluster reaches Penstock", ""}
		}
		next := "check that a Pod of Penstock is ready, and that the cluster reaches its Service"
		if strings.Contains(condition.Message, "x509") {
			next = "let Penstock write its caBundle again: start it with --register, or let the tool that makes the certificate update the APIService"
		}
		return Result{"", Failed, condition.Reason + ": " + condition.Message, next}
	}
	return Result{"", Unknown, "the cluster has not tried it yet", "ask again"}
}

const (
	// renewalLate is the remaining lifetime at which an authority should already be replaced. Penstock
	// replaces its own a year before the end; other issuers usually do at 30 days.
	renewalLate = 14 * 24 * time.Hour
)

// certificates checks the expiry of the CA bundles that verify Penstock.
func (in *installation) certificates(context.Context) []Result {
	var results []Result
	for _, resource := range served() {
		if found := in.services[resource.Group]; found != nil {
			result := judgeBundle(found.Spec.CABundle, in.Now)
			result.Name = "certificate authority of " + nameOf(resource.GroupVersion())
			results = append(results, result)
		}
	}
	return results
}

func judgeBundle(bundle []byte, now time.Time) Result {
	const next = "renew it, and make sure that Penstock runs with --register, or that the tool that makes its certificate has access to the APIService"
	if len(bundle) == 0 {
		return Result{"", Unknown, "the APIService names none: the cluster uses its own, or does not verify", ""}
	}
	var until time.Time
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Result{"", Failed, "the caBundle of the APIService is unreadable: " + err.Error(), next}
		}
		// One valid certificate is enough: an old certificate stays next to its successor.
		if certificate.NotAfter.After(until) {
			until = certificate.NotAfter
		}
	}
	date := until.UTC().Format(time.DateOnly)
	switch {
	case until.IsZero():
		return Result{"", Failed, "the caBundle of the APIService has no certificate", next}
	case now.After(until):
		return Result{"", Failed, "expired on " + date, next}
	case now.Add(renewalLate).After(until):
		return Result{"", Failed, "expires on " + date, next}
	default:
		return Result{"", OK, "valid until " + date, ""}
	}
}

func (in *installation) discovery(ctx context.Context) []Result {
	var results []Result
	for _, resource := range served() {
		version := resource.GroupVersion()
		var found struct{ Resources []struct{ Name string } }
		err := in.get(ctx, "/apis/"+version.String(), &found)
		result := Result{"discovery " + version.String(), Failed, "", "see what the APIService says"}
		switch {
		case err != nil:
			result.Found = err.Error()
		default:
			result.Found = fmt.Sprintf("%s is not among %d resources", resource.Resource, len(found.Resources))
			for _, one := range found.Resources {
				if one.Name == resource.Resource {
					result = Result{result.Name, OK, fmt.Sprintf("%d resources", len(found.Resources)), ""}
				}
			}
		}
		results = append(results, result)
	}
	return results
}

func (in *installation) get(ctx context.Context, path string, into any) error {
	return in.read(ctx, in.client.Get().AbsPath(path), into)
}

func (in *installation) read(ctx context.Context, request *rest.Request, into any) error {
	raw, err := client.Raw(request.SetHeader("Accept", "application/json").Do(ctx))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("reading the answer to %s: %w", request.URL().Path, err)
	}
	return nil
}

func missing(err error) Result {
	if apierrors.IsForbidden(err) {
		return Result{"", Unknown, "you cannot look: " + err.Error(), ""}
	}
	return Result{"", Unknown, err.Error(), "ask again"}
}
