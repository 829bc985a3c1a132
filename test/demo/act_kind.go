package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/chartkind/report"
	"github.com/penstock-project/penstock/test/framework/registry"
)

// kindSpace is the namespace of a Central, kindName its name, and kindAccount the ServiceAccount
// that installs it.
const (
	kindSpace   = "stackrox"
	kindName    = "stackrox-central-services"
	kindAccount = "rhacs-operator"
)

// chartKind installs a custom resource with a chart, and shows its columns during changes.
func chartKind(ctx context.Context, d *demo) {
	d.prepareKind(ctx)
	for _, step := range []struct {
		command, claim string
		want           shown
	}{
		{
			command: "kubectl apply -f " + quoted(filepath.Join(d.central(), "central.yaml")),
			claim:   "it is installed, and every column shows the present state",
			want:    shown{"4.9.0", "admin-password", "StackRox Central Services has been installed.", "True", report.ReasonReconcileSuccessful},
		},
		{
			command: `kubectl patch central -n stackrox stackrox-central-services --type=merge -p '{"spec":{"scanner":{"replicas":2}}}'`,
			claim:   "a change of its spec makes a revision that waits",
			want:    shown{"4.9.0", "admin-password", "central-stackrox-2 waits for approval", "True", report.ReasonReconciling},
		},
		{
			command: "kubectl get cer central-stackrox-2 --subresource=diff &&\nkubectl penstock resume central-stackrox-2 --yes",
			claim:   "its changes were read before they were made",
			want:    shown{"4.9.0", "admin-password", "StackRox Central Services has been installed.", "True", report.ReasonReconcileSuccessful},
		},
		{
			command: `kubectl patch central -n stackrox stackrox-central-services --type=merge -p '{"spec":{"scanner":{"replicas":-1}}}'`,
			claim:   "an impossible spec changes no installed object, and status has the reason",
			want:    shown{"4.9.0", "admin-password", "the chart cannot be rendered", "True", report.Irreconcilable},
		},
		{
			command: `kubectl patch central -n stackrox stackrox-central-services --type=merge -p '{"spec":{"scanner":{"replicas":2}}}' &&` +
				"\nkubectl scale -n stackrox deployment/scanner --replicas=0",
			claim: "the spec is valid again; the replicas that a user scales down stay so, and status reports them at once",
			want:  shown{"4.9.0", "admin-password", "StackRox Central Services has been installed.", "False", report.ReasonReconcileSuccessful},
		},
		{
			command: "kubectl scale -n stackrox deployment/scanner --replicas=2",
			claim:   "it recovers as soon as its workload does",
			want:    shown{"4.9.0", "admin-password", "StackRox Central Services has been installed.", "True", report.ReasonReconcileSuccessful},
		},
	} {
		out := d.show(ctx, step.command)
		if strings.Contains(step.command, "diff") && len(missingFrom(out, "Changed Deployment.apps stackrox scanner")) > 0 {
			panic(stop{&failure{claim: step.command, want: "the Deployment of the scanner, changed", got: out}})
		}
		d.showsColumns(ctx, step.claim, step.want)
	}
}

func (d *demo) central() string { return filepath.Join(filepath.Dir(d.Plans), "central") }

// prepareKind publishes the charts, and creates a ChartKind for them. Every revision except the
// first waits for approval.
func (d *demo) prepareKind(ctx context.Context) {
	for name, folder := range map[string]string{"central-services": "chart", "secured-cluster-services": "secured-chart"} {
		image := get(registry.FromFolder(filepath.Join(d.central(), folder)))
		must(registry.Push(ctx, d.registry.Dir, d.registry.Host+"/charts/"+name+":4.9.0", image))
	}
	d.unshown(ctx, fmt.Sprintf("kubectl apply -f %[1]s/crds.yaml -f %[1]s/operator.yaml && kubectl create namespace %s", quoted(d.central()), kindSpace))
	d.note("the charts of the example are in the registry; its kinds, and the ServiceAccount that installs them, in the cluster")
	d.show(ctx, fmt.Sprintf(`sed '/^  name: central$/{n;s/$/\n  upgradeApproval: Manual/}' %s |
kubectl apply --server-side -f - &&
kubectl wait --for=condition=Accepted chartkinds --all --timeout=%s`, quoted(filepath.Join(d.central(), "chartkinds.yaml")), patience))
}

// shown are the columns of a Central: version, secret, message, available and progressing.
type shown [5]string

func columnsOf(central *unstructured.Unstructured) shown {
	status := report.StatusOf(central)
	out := shown{0: status.ReconciledVersion}
	out[1], _, _ = unstructured.NestedString(central.Object, "spec", "central", "adminPasswordSecretName")
	for _, condition := range status.Conditions {
		switch condition.Type {
		case report.Deployed:
			out[2] = condition.Message
		case report.Ready:
			out[3] = string(condition.Status)
		case report.Progressing:
			out[4] = condition.Reason
		}
	}
	return out
}

// like reports whether all columns are equal; the message may contain more text.
func (c shown) like(want shown) bool {
	contains := strings.Contains(c[2], want[2])
	c[2] = want[2]
	return contains && c == want
}

func (d *demo) showsColumns(ctx context.Context, claim string, want shown) {
	resource := schema.GroupVersionResource{Group: "platform.stackrox.io", Version: "v1alpha1", Resource: "centrals"}
	command := "kubectl get centrals -n " + kindSpace
	header := "NAME VERSION ADMINPASSWORD MESSAGE AVAILABLE PROGRESSING AGE"
	var last shown
	var out result
	var failed error
	err := follow(ctx, d.cluster.dynamic.Resource(resource).Namespace(kindSpace), named(kindName), d.cluster.alive,
		func(list *unstructured.UnstructuredList) []*unstructured.Unstructured { return pointers(list.Items) },
		func(central *unstructured.Unstructured) bool {
			if last = columnsOf(central); !last.like(want) {
				return false
			}
			out, failed = d.shell.run(ctx, command)
			return failed != nil || len(missingFrom(out.Stdout, append([]string{header}, want[:]...)...)) == 0
		})
	if err = errors.Join(err, failed); err != nil {
		panic(stop{&failure{claim: claim, want: strings.Join(want[:], " | "), got: fmt.Sprintf("%v; %s\n%s", err, strings.Join(last[:], " | "), out.Stdout)}})
	}
	d.command(command)
	d.output(out.Stdout)
	d.ok("%s", claim)
}
