package upgradereadiness

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	"github.com/penstock-project/penstock/pkg/lifecycle"
	"github.com/penstock-project/penstock/pkg/manifest"
)

// manyRevisions holds revisions in memory. Reading their manifests parses those that are judged.
type manyRevisions struct {
	list *olm.ClusterExtensionRevisionList
	b    *testing.B
}

func (m manyRevisions) List(context.Context, *metainternalversion.ListOptions) (apiruntime.Object, error) {
	return m.list, nil
}

func (m manyRevisions) Contents(_ context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	var out []manifest.Object
	for _, one := range revision.Spec.Phases[0].Objects {
		read, err := manifest.Digester{}.FromJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":%q},"spec":{"maxUnavailable":0}}`, one.APIVersion, one.Kind, one.Name, one.Namespace))
		if err != nil {
			m.b.Fatal(err)
		}
		out = append(out, read)
	}
	return out, nil
}

// BenchmarkGet computes an answer about 1,000 extensions of 32 objects, with two findings each.
func BenchmarkGet(b *testing.B) {
	table, err := lifecycle.New()
	if err != nil {
		b.Fatal(err)
	}
	list := &olm.ClusterExtensionRevisionList{}
	for i := range 1000 {
		one := olm.ClusterExtensionRevision{}
		one.Name = fmt.Sprintf("e%d-1", i)
		phase := olm.RevisionPhase{Name: "deploy", Objects: []olm.RevisionObject{
			{APIVersion: "resource.k8s.io/v1beta1", Kind: "DeviceClass", Name: "gpu"},
			{APIVersion: "policy/v1", Kind: "PodDisruptionBudget", Name: "narrow", Namespace: one.Name},
		}}
		for n := range 30 {
			phase.Objects = append(phase.Objects, olm.RevisionObject{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint(n), Namespace: one.Name})
		}
		one.Spec.Revision, one.Spec.LifecycleState, one.Spec.Phases = 1, olm.LifecycleStateActive, []olm.RevisionPhase{phase}
		list.Items = append(list.Items, one)
	}
	current := clusterversion.Kubernetes{Major: 1, Minor: 37}
	r := NewREST(Deps{Revisions: manyRevisions{list, b}, Authorizer: everything{}, Table: table, Current: func(context.Context) *clusterversion.Kubernetes { return &current }})
	ctx := request.WithUser(b.Context(), &user.DefaultInfo{Name: "alice"})
	began, answer := processor(b), apiruntime.Object(nil)
	b.ReportAllocs()
	for b.Loop() {
		if answer, err = r.Get(ctx, "1.38", &v1alpha1.UpgradeReadinessOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric((processor(b)-began).Seconds()/float64(b.N), "processor-s/op")
	if found := answer.(*v1alpha1.UpgradeReadiness); len(found.Findings)+int(found.Omitted) != 2000 {
		b.Errorf("%d findings, %d left out", len(found.Findings), found.Omitted)
	}
}

func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
