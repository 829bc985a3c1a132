package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/server/serviceaccounts"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	// policyRounds is the number of turns of each set of policies.
	policyRounds = 5
	// enforcing limits the time until a kube-apiserver enforces a policy.
	enforcing     = time.Minute
	jobsNamespace = "penstock-system"
)

// policySet is a set of policies that limits Penstock's jobs during a turn.
type policySet struct {
	name     string
	policies []*admissionapply.ValidatingAdmissionPolicyApplyConfiguration
}

// policySets returns no policy, the real policy, and one policy for each job, which matches by its
// user.
func policySets() []policySet {
	one := serviceaccounts.LimitPolicy(jobsNamespace)
	each := policySet{name: "one for each job"}
	for _, j := range serviceaccounts.Jobs() {
		if j.Limit == nil {
			continue
		}
		spec := admissionapply.ValidatingAdmissionPolicySpec().WithFailurePolicy("Fail").WithMatchConstraints(one.Spec.MatchConstraints).
			WithMatchConditions(admissionapply.MatchCondition().WithName("user").
				WithExpression(fmt.Sprintf("request.userInfo.username == %q", serviceaccount.MakeUsername(jobsNamespace, j.Name)))).
			WithValidations(admissionapply.Validation().WithExpression(j.Limit.Allows).WithMessage(j.Limit.Message))
		each.policies = append(each.policies, admissionapply.ValidatingAdmissionPolicy(j.Name).WithSpec(spec))
	}
	return []policySet{{name: "none"}, {serviceaccounts.LimitsName, []*admissionapply.ValidatingAdmissionPolicyApplyConfiguration{one}}, each}
}

// written is an object that is written repeatedly.
type written struct {
	name   string
	client func(*rest.Config) dynamic.ResourceInterface
	object *unstructured.Unstructured
	writes int
}

func kindsWritten(t *testing.T) []written {
	t.Helper()
	of := func(resource schema.GroupVersionResource, namespace string) func(*rest.Config) dynamic.ResourceInterface {
		return func(config *rest.Config) dynamic.ResourceInterface {
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			if namespace == "" {
				return client.Resource(resource)
			}
			return client.Resource(resource).Namespace(namespace)
		}
	}
	fields := map[string]any{}
	for i := range 400 {
		fields[fmt.Sprintf("field%03d", i)] = map[string]any{"type": "string", "maxLength": int64(100), "description": strings.Repeat("what it is for ", 12)}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "gadgets.bench.example.com"},
		"spec": map[string]any{
			"group": "bench.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": fields}},
			}}}},
		},
	}}
	settings := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings", "namespace": "default"},
		"data": map[string]any{"text": strings.Repeat("value ", 170)},
	}}
	return []written{
		{"ConfigMap of 1 KB", of(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, "default"), settings, 300},
		{"CustomResourceDefinition of 100 KB", of(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, ""), definition, 60},
	}
}

// TestPolicies measures the processor time of the policies for Penstock's jobs in kube-apiserver,
// for writes of users and of the engine.
func TestPolicies(t *testing.T) {
	if os.Getenv("BENCH") != "webhooks" {
		t.Skip("a benchmark that wants the machine for itself: run it by `make bench SUITE=webhooks`")
	}
	c := cluster.Start(t, cluster.AllProcessors())
	pid, err := c.Plane().Pid("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	writers := map[string]*rest.Config{"anybody": c.Config(), "the engine": as(c, serviceaccounts.Engine())}
	kinds, sets := kindsWritten(t), policySets()
	for _, kind := range kinds {
		if _, err := kind.client(c.Config()).Create(t.Context(), kind.object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	samples := map[string][]float64{}
	for round := range policyRounds + 1 {
		for i := range sets {
			set := sets[(round+i)%len(sets)]
			enforce(t, c, set)
			for _, kind := range kinds {
				for _, who := range slices.Sorted(maps.Keys(writers)) {
					used := write(t, pid, kind, kind.client(writers[who]), fmt.Sprintf("%d-%d", round, i))
					if round > 0 { // the first round is a warm-up
						row := kind.name + "/" + who + "/" + set.name
						samples[row] = append(samples[row], used)
					}
				}
			}
		}
	}
	report := &measure.Report{}
	table := report.Table("Processor time of kube-apiserver for an update, ms", "object", "written by", "policies", "median", "10 % to 90 %")
	for _, kind := range kinds {
		for _, who := range slices.Sorted(maps.Keys(writers)) {
			for _, set := range sets {
				spread := measure.SpreadOf(samples[kind.name+"/"+who+"/"+set.name])
				table.Row(kind.name, who, set.name, fmt.Sprintf("%.2f", spread.Median), fmt.Sprintf("%.2f to %.2f", spread.Low, spread.High))
			}
		}
	}
	fmt.Println(measure.Machine(time.Now()))
	if err := report.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// write changes a label of an object repeatedly, and returns the processor time of an update, in
// ms.
func write(t *testing.T, pid int, kind written, client dynamic.ResourceInterface, turn string) float64 {
	t.Helper()
	before, err := measure.CPUOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	for n := range kind.writes {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{"turn": fmt.Sprintf("%s-%d", turn, n)}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Patch(t.Context(), kind.object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	after, err := measure.CPUOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	return float64(after-before) / float64(time.Millisecond) / float64(kind.writes)
}

// enforce installs exactly these policies, and waits until they are enforced. With policies,
// kube-apiserver then refuses a request that violates one of them. Without policies it accepts that
// request.
func enforce(t *testing.T, c *cluster.Cluster, set policySet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enforcing)
	defer cancel()
	core, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	admission, all := core.AdmissionregistrationV1(), metav1.ListOptions{}
	if err := admission.ValidatingAdmissionPolicyBindings().DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
		t.Fatal(err)
	}
	if err := admission.ValidatingAdmissionPolicies().DeleteCollection(ctx, metav1.DeleteOptions{}, all); err != nil {
		t.Fatal(err)
	}
	untilRefused(ctx, t, c, false)
	force := metav1.ApplyOptions{FieldManager: "bench", Force: true}
	for _, policy := range set.policies {
		if _, err := admission.ValidatingAdmissionPolicies().Apply(ctx, policy, force); err != nil {
			t.Fatal(err)
		}
		binding := admissionapply.ValidatingAdmissionPolicyBinding(*policy.Name).WithSpec(
			admissionapply.ValidatingAdmissionPolicyBindingSpec().WithPolicyName(*policy.Name).WithValidationActions("Deny"))
		if _, err := admission.ValidatingAdmissionPolicyBindings().Apply(ctx, binding, force); err != nil {
			t.Fatal(err)
		}
	}
	untilRefused(ctx, t, c, len(set.policies) > 0)
}

func as(c *cluster.Cluster, j serviceaccounts.Job) *rest.Config {
	config := rest.CopyConfig(c.Config())
	config.Impersonate = rest.ImpersonationConfig{UserName: serviceaccount.MakeUsername(jobsNamespace, j.Name), Groups: []string{user.SystemPrivilegedGroup}}
	return config
}

// untilRefused waits until a write of each limited job is refused, or until none is.
func untilRefused(ctx context.Context, t *testing.T, c *cluster.Cluster, want bool) {
	t.Helper()
	for _, j := range serviceaccounts.Jobs() {
		if j.Limit == nil {
			continue
		}
		client, err := dynamic.NewForConfig(as(c, j))
		if err != nil {
			t.Fatal(err)
		}
		var answer error
		if err := poll.Until(ctx, func(ctx context.Context) bool {
			_, answer = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
				Patch(ctx, "default", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{}, "status")
			return apierrors.IsInvalid(answer) == want
		}); err != nil {
			t.Fatalf("job %s is refused: not %t after %s: %v", j.Name, want, enforcing, answer)
		}
	}
}
