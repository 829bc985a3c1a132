package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
)

// TestPhaseTable compares the table with testdata/phases.txt. A change moves objects of all users,
// so a reviewer must see it.
func TestPhaseTable(t *testing.T) {
	var b strings.Builder
	seen := map[schema.GroupKind]string{}
	for _, row := range phaseTable() {
		fmt.Fprintf(&b, "%s\n", row.phase)
		for _, kind := range row.kinds {
			fmt.Fprintf(&b, "    %s\n", kind)
			if other, twice := seen[kind]; twice {
				t.Errorf("%s is in %s and in %s", kind, other, row.phase)
			}
			seen[kind] = row.phase
		}
	}
	golden := filepath.Join("testdata", "phases.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the table changed; run with UPDATE_GOLDEN=1 if that is meant. -want, +got:\n%s", diff)
	}
}

func TestSort(t *testing.T) {
	crd := func(group, kind string) string {
		return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", strings.ToLower(kind)+"s."+group,
			fmt.Sprintf(`,"spec":{"group":%q,"names":{"kind":%q}}`, group, kind))
	}
	cases := map[string]struct {
		reason  string
		objects []string
		want    []string
	}{
		"Nothing": {reason: "there are no empty phases"},
		"AllPhases": {
			reason: "phases are in the order of the table, whatever the order of the input",
			objects: []string{
				object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "w", ""),
				object("networking.k8s.io/v1", "Ingress", "n", "i", ""),
				object("autoscaling/v2", "HorizontalPodAutoscaler", "n", "h", ""),
				object("apps/v1", "Deployment", "n", "d", ""),
				object("v1", "Service", "n", "s", ""),
				object("rbac.authorization.k8s.io/v1", "RoleBinding", "n", "b", ""),
				object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "r", ""),
				crd("example.com", "Lamp"),
				object("v1", "PersistentVolumeClaim", "n", "p", ""),
				object("v1", "Secret", "n", "s", ""),
				object("v1", "ServiceAccount", "n", "a", ""),
				object("policy/v1", "PodDisruptionBudget", "n", "p", ""),
				object("v1", "Namespace", "", "n", ""),
			},
			want: []string{
				"namespaces: Namespace n",
				"policies: PodDisruptionBudget.policy n/p",
				"identity: ServiceAccount n/a",
				"configuration: Secret n/s",
				"storage: PersistentVolumeClaim n/p",
				"crds: CustomResourceDefinition.apiextensions.k8s.io lamps.example.com",
				"roles: ClusterRole.rbac.authorization.k8s.io r",
				"bindings: RoleBinding.rbac.authorization.k8s.io n/b",
				"infrastructure: Service n/s",
				"deploy: Deployment.apps n/d",
				"scaling: HorizontalPodAutoscaler.autoscaling n/h",
				"publish: Ingress.networking.k8s.io n/i",
				"admission: ValidatingWebhookConfiguration.admissionregistration.k8s.io w",
			},
		},
		"InsideOfAPhase": {
			reason: "the order is group, kind, namespace, name",
			objects: []string{
				object("batch/v1", "Job", "a", "a", ""),
				object("apps/v1", "StatefulSet", "a", "a", ""),
				object("apps/v1", "Deployment", "b", "a", ""),
				object("apps/v1", "Deployment", "a", "b", ""),
				object("apps/v1", "Deployment", "a", "a", ""),
				object("v1", "Pod", "z", "z", ""),
			},
			want: []string{
				"deploy: Pod z/z, Deployment.apps a/a, Deployment.apps a/b, Deployment.apps b/a, StatefulSet.apps a/a, Job.batch a/a",
			},
		},
		"OwnCustomResources": {
			reason: "what the set defines comes behind the workloads that may serve it, even if the table lists the kind",
			objects: []string{
				object("example.com/v1", "Lamp", "n", "l", ""), crd("example.com", "Lamp"),
				object("cert-manager.io/v1", "Issuer", "n", "i", ""), crd("cert-manager.io", "Issuer"),
				object("apps/v1", "Deployment", "n", "d", ""),
			},
			want: []string{
				"crds: CustomResourceDefinition.apiextensions.k8s.io issuers.cert-manager.io, CustomResourceDefinition.apiextensions.k8s.io lamps.example.com",
				"deploy: Deployment.apps n/d",
				"publish: Issuer.cert-manager.io n/i, Lamp.example.com n/l",
			},
		},
		"ForeignCustomResources": {
			reason: "workloads may wait for what a kind that nobody knows makes",
			objects: []string{
				object("apps/v1", "Deployment", "n", "d", ""),
				object("cert-manager.io/v1", "Issuer", "n", "i", ""),
				object("external-secrets.io/v1", "ExternalSecret", "n", "e", ""),
			},
			want: []string{
				"infrastructure: Issuer.cert-manager.io n/i, ExternalSecret.external-secrets.io n/e",
				"deploy: Deployment.apps n/d",
			},
		},
		"SameNameOtherGroup": {
			reason:  "a kind is a group and a name",
			objects: []string{object("example.com/v1", "Deployment", "n", "d", ""), object("serving.knative.dev/v1", "Service", "n", "s", "")},
			want:    []string{"infrastructure: Deployment.example.com n/d, Service.serving.knative.dev n/s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var objects []manifest.Object
			for _, text := range tc.objects {
				parsed, err := manifest.Parse([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				objects = append(objects, parsed)
			}
			phases, err := Sort(objects)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, phase := range phases {
				var ids []string
				for _, object := range phase.Objects {
					ids = append(ids, object.ID.String())
				}
				got = append(got, phase.Name+": "+strings.Join(ids, ", "))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if Count(phases) != len(tc.objects) {
				t.Errorf("%d objects in, %d out", len(tc.objects), Count(phases))
			}
		})
	}
}

func object(apiVersion, kind, namespace, name, more string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q}%s}`, apiVersion, kind, name, namespace, more)
}
