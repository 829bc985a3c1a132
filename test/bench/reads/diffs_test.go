package reads

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/bench/operator"
)

// inProcess is the comparison alone: without a request, store or encoding.
const inProcess = "in process"

type pair struct {
	operator.Operator
	// most is the largest processor time of the comparison, in ms; 0 means no limit.
	most float64
}

// compared returns the pairs. Every object in them changes, as for operators that label everything
// with their version.
func compared() []pair {
	return []pair{
		{operator.Operator{Name: "sized-46", Objects: 46, Bytes: 400_000, AllChange: true}, 0},
		{operator.Operator{Name: "sized-16", Objects: 16, Bytes: 2_400_000, AllChange: true}, 100},
		{operator.Operator{Name: "sized-1000", Objects: 1000, Bytes: 2_400_000, AllChange: true}, 150},
	}
}

func (b *bench) diffs() {
	b.t.Helper()
	for _, o := range compared() {
		for number := 1; number <= 2; number++ {
			if err := b.create(b.t.Context(), o.Operator, number); err != nil {
				b.t.Fatal(err)
			}
		}
		path := fmt.Sprintf("%s/%s-2/diff", revisions, o.Name)
		compare := comparison(b.t, o.Operator)
		all := []measure.Subject{{Name: inProcess, Do: compare}}
		all = append(all, subjects([]target{{aggregated, b.host, path}, {direct, b.direct, path}},
			func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asJSON) })...)
		all = append(all, subjects([]target{{aggregated + ", table", b.host, path}},
			func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asTable) })...)
		b.run("Diff of two revisions", aggregated, measure.Case{
			Name: diffTitle(o), Rounds: b.settings.rounds, Subjects: all,
		})
		used := processorTime(b.t, compare, b.settings.rounds)
		b.report.Table("Processor time of a comparison, in process", "of", "ms").Row(diffTitle(o), fmt.Sprintf("%.0f", used))
		if o.most > 0 {
			b.report.AtMost(fmt.Sprintf("diff of %s: processor time in process", diffTitle(o)), o.most, used, "ms")
		}
	}
}

// processorTime returns the mean processor time of several calls, in ms, with their garbage
// collection. Other load on the machine does not affect it.
func processorTime(t testing.TB, do func(context.Context) (int64, error), times int) float64 {
	t.Helper()
	runtime.GC()
	before := ownCPU(t)
	for range times {
		if _, err := do(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	return (ownCPU(t) - before).Seconds() * 1000 / float64(times)
}

// BenchmarkComparison runs the comparison alone. Each case is an operator.
func BenchmarkComparison(b *testing.B) {
	for _, o := range compared() {
		b.Run(diffTitle(o), func(b *testing.B) {
			compare := comparison(b, o.Operator)
			b.ReportAllocs()
			before := ownCPU(b)
			for b.Loop() {
				if _, err := compare(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((ownCPU(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
		})
	}
}

func ownCPU(t testing.TB) time.Duration {
	t.Helper()
	used, err := measure.OwnCPU()
	if err != nil {
		t.Fatal(err)
	}
	return used
}

func diffTitle(o pair) string {
	return fmt.Sprintf("%d objects, 2 x %.1f MB", o.Objects, measure.MB(o.Bytes))
}

// comparison compares two releases in this process, as the server does.
func comparison(t testing.TB, o operator.Operator) func(context.Context) (int64, error) {
	t.Helper()
	types, err := diffschema.NewBuiltin()
	if err != nil {
		t.Fatal(err)
	}
	memory := inMemory{}
	from, to := memory.add(t, o, 1), memory.add(t, o, 2)
	comparer := revisiondiff.New(revisiondiff.Deps{Revisions: memory, Authorizer: allowed(), Schema: types})
	return func(ctx context.Context) (int64, error) {
		found, err := comparer.Between(ctx, from, to, &v1alpha1.RevisionDiffOptions{})
		if err == nil && int(found.Summary.Changed) != o.Objects {
			err = fmt.Errorf("%d objects of %s changed, want all %d", found.Summary.Changed, o.Name, o.Objects)
		}
		return 0, err
	}
}

func allowed() authorizer.UnconditionalAuthorizer {
	return authorizerfactory.NewAlwaysAllowAuthorizer()
}

type inMemory map[string][]manifest.Object

func (m inMemory) add(t testing.TB, o operator.Operator, number int) *olm.ClusterExtensionRevision {
	t.Helper()
	revision := &olm.ClusterExtensionRevision{}
	revision.Name = fmt.Sprintf("%s-%d", o.Name, number)
	phase := olm.RevisionPhase{Name: "all"}
	for _, unparsed := range o.Manifests(number) {
		text, err := json.Marshal(unparsed)
		if err != nil {
			t.Fatal(err)
		}
		object, err := manifest.Digester{}.FromJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		m[revision.Name] = append(m[revision.Name], object)
		phase.Objects = append(phase.Objects, olm.RevisionObject{
			APIVersion: object.APIVersion(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name,
			Digest: string(object.Digest), Size: int64(len(object.JSON)),
		})
	}
	revision.Spec.Phases = []olm.RevisionPhase{phase}
	return revision
}

// Stored, Chain and Contents implement revisiondiff.Revisions; only Contents is used.
func (m inMemory) Stored(context.Context, string) (*olm.ClusterExtensionRevision, error) {
	return nil, nil
}
func (m inMemory) Chain(context.Context, string) ([]olm.ClusterExtensionRevision, error) {
	return nil, nil
}
func (m inMemory) Contents(_ context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	return m[revision.Name], nil
}
