package reads

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/test/bench/measure"
	"github.com/penstock-project/penstock/test/bench/operator"
)

// inProcess is the comparison alone: no request, nothing read from the store,
// nothing encoded.
const inProcess = "in process"

// diffs measures the diff of two releases in which every object changes, as those
// of operators do that label everything with their version.
func (b *bench) diffs() {
	b.t.Helper()
	for _, o := range []operator.Operator{
		{Name: "sized-46", Objects: 46, Bytes: 400_000, AllChange: true},
		{Name: "sized-1000", Objects: 1000, Bytes: 2_400_000, AllChange: true},
	} {
		for number := 1; number <= 2; number++ {
			if err := b.create(b.t.Context(), o, number); err != nil {
				b.t.Fatal(err)
			}
		}
		path := fmt.Sprintf("%s/%s-2/diff", revisions, o.Name)
		all := []measure.Subject{{Name: inProcess, Do: b.comparison(o)}}
		all = append(all, subjects([]target{{aggregated, b.host, path}, {direct, b.direct, path}},
			func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asJSON) })...)
		all = append(all, subjects([]target{{aggregated + ", table", b.host, path}},
			func(ctx context.Context, t target) (int64, error) { return t.client.read(ctx, t.path, asTable) })...)
		b.run("Diff of two revisions", aggregated, measure.Case{
			Name: fmt.Sprintf("%d objects, 2 x %.1f MB", o.Objects, measure.MB(o.Bytes)), Rounds: b.settings.rounds, Subjects: all,
		})
	}
}

// comparison compares two releases in this process, as the server does.
func (b *bench) comparison(o operator.Operator) func(context.Context) (int64, error) {
	b.t.Helper()
	types, err := diffschema.NewBuiltin()
	if err != nil {
		b.t.Fatal(err)
	}
	memory := inMemory{}
	from, to := memory.add(b, o, 1), memory.add(b, o, 2)
	comparer := revisiondiff.New(revisiondiff.Deps{Revisions: memory, Authorizer: allowed(), Schema: types})
	return func(ctx context.Context) (int64, error) {
		found, err := comparer.Between(ctx, from, to, &olm.RevisionDiffOptions{})
		if err == nil && int(found.Summary.Changed) != o.Objects {
			err = fmt.Errorf("%d objects of %s changed, want all %d", found.Summary.Changed, o.Name, o.Objects)
		}
		return 0, err
	}
}

func allowed() authorizer.UnconditionalAuthorizer {
	return authorizerfactory.NewAlwaysAllowAuthorizer()
}

// inMemory has the manifests of revisions, by name.
type inMemory map[string][]manifest.Object

func (m inMemory) add(b *bench, o operator.Operator, number int) *olm.ClusterExtensionRevision {
	b.t.Helper()
	revision := &olm.ClusterExtensionRevision{}
	revision.Name = fmt.Sprintf("%s-%d", o.Name, number)
	phase := olm.RevisionPhase{Name: "all"}
	for _, unparsed := range o.Manifests(number) {
		text, err := json.Marshal(unparsed)
		if err != nil {
			b.t.Fatal(err)
		}
		object, err := manifest.Digester{}.FromJSON(text)
		if err != nil {
			b.t.Fatal(err)
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

// Stored, Chain and Contents implement revisiondiff.Revisions; only Contents is
// asked for.
func (m inMemory) Stored(context.Context, string) (*olm.ClusterExtensionRevision, error) {
	return nil, nil
}
func (m inMemory) Chain(context.Context, string) ([]olm.ClusterExtensionRevision, error) {
	return nil, nil
}
func (m inMemory) Contents(_ context.Context, revision *olm.ClusterExtensionRevision) ([]manifest.Object, error) {
	return m[revision.Name], nil
}
