package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/sigstore"
)

// stores checks whether Penstock reads its store, by a list of one object.
func (in *installation) stores(ctx context.Context) []Result {
	var results []Result
	for _, resource := range served() {
		_, err := client.Raw(in.client.Get().AbsPath("/apis/"+resource.GroupVersion().String()+"/"+resource.Resource).Param("limit", "1").SetHeader("Accept", "application/json").Do(ctx))
		result := judgeRead(err)
		result.Name = "store of " + resource.Resource
		results = append(results, result)
	}
	return results
}

func judgeRead(err error) Result {
	switch {
	case err == nil:
		return Result{"", OK, "it can be read", ""}
	case apierrors.IsForbidden(err):
		return missing(err)
	case apierrors.IsNotFound(err):
		return Result{"", Failed, "it is not served", "see what the APIService says"}
	case apierrors.IsServiceUnavailable(err):
		return Result{"", Failed, err.Error(), "do what the message says; the log of Penstock says more"}
	default:
		return Result{"", Failed, err.Error(), "see the log of Penstock"}
	}
}

// readiness requests the readiness of a replica. This needs the right to its Service's proxy.
func (in *installation) readiness(ctx context.Context) []Result {
	const name = "readiness"
	found := in.services[v1alpha1.GroupName]
	if found == nil || found.Spec.Service == nil {
		return []Result{{name, Unknown, "it is not known which Service to ask", ""}}
	}
	service := found.Spec.Service
	// kube-apiserver's proxy reaches only Pods. A Service without a selector means that Penstock
	// runs outside the cluster, and the check is skipped. If the user cannot read the Service, the
	// request is sent anyway.
	var seen struct {
		Spec struct{ Selector map[string]string } `json:"spec"`
	}
	if err := in.get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/services/%s", service.Namespace, service.Name), &seen); err == nil && len(seen.Spec.Selector) == 0 {
		return []Result{{name, Skipped, fmt.Sprintf("no Pod is behind Service %s/%s: Penstock runs outside the cluster", service.Namespace, service.Name), ""}}
	}
	raw, err := client.Raw(in.client.Get().AbsPath(fmt.Sprintf("/api/v1/namespaces/%s/services/https:%s:%d/proxy/readyz", service.Namespace, service.Name, service.Port)).
		Param("verbose", "true").Do(ctx))
	result := judgeReadiness(string(raw), err)
	result.Name = name
	return []Result{result}
}

// judgeReadiness reads lines such as "[-]store-identity failed: reason withheld".
func judgeReadiness(lines string, err error) Result {
	var failed []string
	passed := 0
	for line := range strings.Lines(lines) {
		switch name, _, _ := strings.Cut(strings.TrimSpace(line), " "); {
		case strings.HasPrefix(name, "[-]"):
			failed = append(failed, strings.TrimPrefix(name, "[-]"))
		case strings.HasPrefix(name, "[+]"):
			passed++
		}
	}
	switch {
	case len(failed) > 0:
		return Result{"", Failed, "not ready: " + strings.Join(failed, ", "), "see the log of Penstock, which says why"}
	case err != nil:
		return missing(err)
	case passed == 0:
		return Result{"", Unknown, "the answer is not one of a readiness check", ""}
	default:
		return Result{"", OK, fmt.Sprintf("%d checks pass", passed), ""}
	}
}

const leaseName = "penstock-controllers"

func (in *installation) controllers(ctx context.Context) []Result {
	const name = "controllers"
	found := in.services[v1alpha1.GroupName]
	if found == nil || found.Spec.Service == nil {
		return []Result{{name, Unknown, "it is not known in which namespace Penstock is", ""}}
	}
	var lease coordinationv1.Lease
	err := in.get(ctx, "/apis/coordination.k8s.io/v1/namespaces/"+found.Spec.Service.Namespace+"/leases/"+leaseName, &lease)
	result := judgeLease(lease, err, in.Now)
	result.Name = name
	return []Result{result}
}

// clockSkew is the allowed difference between the clocks of the caller and of the leader.
const clockSkew = 5 * time.Second

func judgeLease(lease coordinationv1.Lease, err error, now time.Time) Result {
	const next = "check that a Pod of Penstock runs, and that its log names no missing right to leases"
	switch {
	case apierrors.IsNotFound(err):
		return Result{"", Failed, "no replica has ever led: nothing is rolled out", next}
	case err != nil:
		return missing(err)
	case ptr.Deref(lease.Spec.HolderIdentity, "") == "" || lease.Spec.RenewTime == nil:
		return Result{"", Failed, "no replica leads: nothing is rolled out", next}
	}
	// A leader gives up before its lease ends, so the lease's duration includes a pending renewal.
	silent := now.Sub(lease.Spec.RenewTime.Time)
	if limit := time.Duration(ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))*time.Second + clockSkew; silent > limit {
		return Result{"", Failed, fmt.Sprintf("%s led, and was last heard of %s ago: nothing is rolled out", *lease.Spec.HolderIdentity, silent.Round(time.Second)), next}
	}
	return Result{"", OK, fmt.Sprintf("%s leads, and renewed its lease %s ago", *lease.Spec.HolderIdentity, max(0, silent).Round(time.Second)), ""}
}

// job is a task of users, and the rights that it needs.
type job struct {
	name   string
	rights []authorizationv1.ResourceAttributes
}

func jobs() []job {
	of := func(version schema.GroupVersion, resource string, subresource string, verbs ...string) []authorizationv1.ResourceAttributes {
		var rights []authorizationv1.ResourceAttributes
		for _, verb := range verbs {
			rights = append(rights, authorizationv1.ResourceAttributes{Verb: verb, Group: version.Group, Version: version.Version, Resource: resource, Subresource: subresource})
		}
		return rights
	}
	cers, plans := v1alpha1.SchemeGroupVersion, hcov1alpha1.SchemeGroupVersion
	const revisions = "clusterextensionrevisions"
	return []job{
		{"see extensions", append(of(cers, revisions, "", "get", "list", "watch"), of(cers, "revisionhistories", "", "get", "list")...)},
		{"see what changes", append(of(cers, revisions, "diff", "get"), of(cers, "revisiondiffs", "", "get")...)},
		{"deploy and pause", append(of(cers, revisions, "", "create", "patch"), of(cers, revisions, "proposal", "create")...)},
		{"roll back", append(of(cers, revisions, "rollback", "create"), of(cers, revisions, "", "create")...)},
		{"see plans", of(plans, "configurationplans", "", "get", "list", "watch")},
		{"make plans", of(plans, "configurationplans", "", "create", "patch")},
		{"approve plans", append(of(plans, "configurationplans", "", "approve"), of(plans, "configurationplans", "approve", "create")...)},
	}
}

// rights lists the rights of the caller. A missing right is not a failure.
func (in *installation) rights(ctx context.Context) []Result {
	var results []Result
	for _, j := range jobs() {
		result := Result{"may " + j.name, OK, "yes", ""}
		var lacks []string
		for _, asked := range j.rights {
			review := &authorizationv1.SelfSubjectAccessReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
				Spec:     authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &asked},
			}
			if err := in.review(ctx, review); err != nil {
				result = missing(err)
				result.Name = "may " + j.name
				break
			}
			if !review.Status.Allowed {
				lacks = append(lacks, spell(asked))
			}
		}
		if len(lacks) > 0 {
			result.State, result.Found = Denied, "you cannot "+strings.Join(lacks, ", ")
			result.Next = "ask for these rights, if you need them"
		}
		results = append(results, result)
	}
	return results
}

// review sends an access review, and stores the cluster's answer in it.
func (in *installation) review(ctx context.Context, review *authorizationv1.SelfSubjectAccessReview) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	raw, err := client.Raw(in.client.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, review)
}

// spell writes a right as a rule that an administrator can grant.
func spell(asked authorizationv1.ResourceAttributes) string {
	resource := asked.Resource + "." + asked.Group
	if asked.Subresource != "" {
		resource = asked.Resource + "/" + asked.Subresource + "." + asked.Group
	}
	return asked.Verb + " " + resource
}

func (in *installation) versions(context.Context) []Result {
	return []Result{judgeRoot(in.answered.Get(), in.Version, in.Now), judgeVersion(in.answered.Get(), in.Version)}
}

// judgeRoot checks the age of the trusted root in this program. It is Penstock's root only if both
// have the same version. Otherwise the check is skipped.
func judgeRoot(server, program string, now time.Time) Result {
	const name = "trusted root"
	if server == "" || server != program {
		return Result{name, Skipped, "Penstock is of another version than this program: penstock version names the day of its root", ""}
	}
	age, old := sigstore.RootAge(now)
	if old {
		return Result{name, Unknown, age + ": it may lack the authorities and logs that sign today", sigstore.RenewRoot}
	}
	return Result{name, OK, age, ""}
}

func judgeVersion(server, program string) Result {
	const name = "version"
	switch {
	case server == "":
		return Result{name, Unknown, "Penstock did not answer, or is older than the header that names its version", ""}
	case program == "" || server == program:
		return Result{name, OK, "Penstock " + server, ""}
	default:
		return Result{name, OK, fmt.Sprintf("Penstock %s; this program is %s", server, program), "use the version of Penstock, if something is not understood"}
	}
}
