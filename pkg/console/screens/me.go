package screens

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	catalogv1alpha1 "github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
	hcov1alpha1 "github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extensionset"
)

// Me names the user of this console, and its cluster.
type Me struct {
	Cluster  string   `json:"cluster"`
	Username string   `json:"username"`
	Groups   []string `json:"groups,omitempty"`
	// Version is the version of the console. Server is the version of Penstock; empty until it has
	// answered.
	Version  string `json:"version"`
	Server   string `json:"server,omitempty"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

func (a *API) me(ctx context.Context, _ *http.Request) (any, error) {
	review := &authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"}}
	if err := a.review(ctx, "/apis/authentication.k8s.io/v1/selfsubjectreviews", review); err != nil {
		return nil, fmt.Errorf("asking who you are: %w", err)
	}
	user := review.Status.UserInfo
	return Me{Cluster: a.Cluster, Username: user.Username, Groups: user.Groups, Version: a.Version, Server: a.Server.Get(), ReadOnly: a.ReadOnly}, nil
}

// Right reports whether RBAC allows the user an action. The effects of the action in the cluster need
// further rights, which Penstock checks.
type Right struct {
	Allowed bool `json:"allowed"`
	// Missing describes the missing right.
	Missing string `json:"missing,omitempty"`
}

type right struct{ verb, group, resource, subresource string }

func (r right) String() string {
	resource := r.resource
	if r.subresource != "" {
		resource += "/" + r.subresource
	}
	return r.verb + " " + resource + "." + r.group
}

// buttons returns the rights that pages check, for their content and their buttons.
func buttons() map[string]right {
	olm, hco, catalog := olmv1alpha1.GroupName, hcov1alpha1.GroupName, catalogv1alpha1.GroupName
	const rollouts = "clusterextensionrollouts"
	return map[string]right{
		"listRevisions":  {"list", olm, "clusterextensionrevisions", ""},
		"readDiffs":      {"get", olm, "clusterextensionrevisions", "diff"},
		"compare":        {"get", olm, "revisiondiffs", ""},
		"readObjects":    {"get", olm, "clusterextensionrevisions", "objects"},
		"readHistory":    {"get", olm, "revisionhistories", ""},
		"listPlans":      {"list", hco, "configurationplans", ""},
		"readPlanDiffs":  {"get", hco, "configurationplans", "diff"},
		"patchRevision":  {"patch", olm, "clusterextensionrevisions", ""},
		"rollback":       {"create", olm, "clusterextensionrevisions", "rollback"},
		"approvePlan":    {"create", hco, "configurationplans", "approve"},
		"computePlan":    {"create", hco, "configurationplans", "retry"},
		"undoPlan":       {"create", hco, "configurationplans", "rollback"},
		"patchPlan":      {"patch", hco, "configurationplans", ""},
		"readManifests":  {"get", olm, "clusterextensionrevisions", "manifests"},
		"listProfiles":   {"list", hco, "configurationprofiles", ""},
		"createPlan":     {"create", hco, "configurationplans", ""},
		"listPackages":   {"list", catalog, "catalogpackages", ""},
		"readGraphs":     {"get", catalog, "catalogpackages", "graph"},
		"install":        {"create", extension.Resource.Group, extension.Resource.Resource, ""},
		"createRevision": {"create", olm, "clusterextensionrevisions", ""},
		"listSets":       {"list", extensionset.Resource.Group, extensionset.Resource.Resource, ""},
		"listRollouts":   {"list", olm, rollouts, ""},
		"approveRollout": {"create", olm, rollouts, "approve"},
		"haltRollout":    {"create", olm, rollouts, "halt"},
		"resumeRollout":  {"create", olm, rollouts, "resume"},
		"retryRollout":   {"create", olm, rollouts, "retry"},
		"skipRollout":    {"create", olm, rollouts, "skip"},
		"readReadiness":  {"get", olm, "upgradereadinesses", ""},
		"patchExtension": {"patch", extension.Resource.Group, extension.Resource.Resource, ""},
	}
}

// rights returns the buttons that the user may use. It sends one request for each, all at the same
// time.
func (a *API) rights(ctx context.Context, r *http.Request) (any, error) {
	known := buttons()
	asked := r.URL.Query()["button"]
	for _, name := range asked {
		if _, is := known[name]; !is {
			return nil, &Refusal{Status: http.StatusBadRequest, Reason: "Button", Message: fmt.Sprintf("there is no button %q", name)}
		}
	}
	found := make(map[string]Right, len(asked))
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for _, name := range asked {
		all.Go(func() {
			said, err := a.right(ctx, known[name], r.URL.Query().Get("name"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			}
			found[name] = said
		})
	}
	all.Wait()
	return found, failed
}

func (a *API) right(ctx context.Context, wanted right, name string) (Right, error) {
	if a.ReadOnly {
		return Right{Missing: "this console was started with --read-only"}, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: wanted.verb, Group: wanted.group, Resource: wanted.resource, Subresource: wanted.subresource, Name: name,
		}},
	}
	if err := a.review(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review); err != nil {
		return Right{}, fmt.Errorf("asking what you may do: %w", err)
	}
	if review.Status.Allowed {
		return Right{Allowed: true}, nil
	}
	return Right{Missing: "you lack the right: " + wanted.String()}, nil
}

// review sends an access review to the cluster, and decodes the answer into the same object.
func (a *API) review(ctx context.Context, path string, question any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	raw, err := client.Raw(a.penstock.OlmV1alpha1().RESTClient().Post().AbsPath(path).SetHeader("Content-Type", "application/json").Body(body).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, question)
}
