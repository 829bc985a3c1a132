package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/records"
	penstock "github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/gc"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/references"
)

// kept is the number of revisions of an extension: an active revision, and the revisions that
// retention keeps.
const kept = 1 + 5

// depot is a store that creates and retires revisions as the API does.
type depot struct {
	t         *testing.T
	etcd      *clientv3.Client
	prefix    string
	keys      penstock.Keys
	packs     *pack.Store
	heads     *chain.Heads
	deltas    bool
	collector *gc.Collector
	// rebased and created count packs.
	rebased, created int
}

func newDepot(t *testing.T, etcd *clientv3.Client, prefix string, digester manifest.Digester, deltas bool) *depot {
	t.Helper()
	packs := pack.New(etcd, prefix, digester)
	d := &depot{
		t: t, etcd: etcd, prefix: prefix, keys: penstock.NewKeys(prefix), packs: packs, heads: chain.NewHeads(etcd, prefix), deltas: deltas,
		collector: gc.New(etcd, references.NewSource(etcd, prefix, records.Decoders()), packs),
	}
	d.must(d.collector.Begin(t.Context()))
	return d
}

func (d *depot) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// roll makes a release the newest revision of its chain, and deletes the oldest if there are too
// many. Then it collects garbage, as Penstock does after every deletion.
func (d *depot) roll(history []release, at int) {
	d.t.Helper()
	ctx, r := d.t.Context(), history[at]
	first := max(0, at+1-kept)
	var earlier []string
	if d.deltas {
		for i := at - 1; i >= max(0, at-kept); i-- {
			earlier = append(earlier, rootOf(history[i]))
		}
	}
	_, err := d.packs.PutInChain(ctx, r.objects, earlier)
	d.must(err)
	d.created++

	uid := types.UID(fmt.Sprintf("6d758d4d-3e56-4c5c-8bb3-%012x", d.created))
	head, _, err := d.heads.Get(ctx, r.operator)
	d.must(err)
	if head.Name == "" {
		head.Name = r.operator
	}
	row := chain.Row{Revision: int64(r.number), UID: uid, PackRoot: rootOf(r), CreatedAt: time.Unix(0, 0).UTC(), RequestedBy: "system:serviceaccount:operators:installer", Version: r.version}
	d.must(d.heads.Advance(ctx, head, int64(r.number), uid))
	d.put(d.record(r), sealed(d.t, r, uid))
	d.put(d.keys.ChainVersion(r.operator), []byte(penstock.ChainVersionRecord()))
	d.must(d.heads.Confirm(ctx, r.operator, int64(r.number), uid, row))
	d.must(d.heads.Succeed(ctx, r.operator, int64(r.number), uid, chain.Row{}))
	if first > 0 {
		_, err := d.etcd.Delete(ctx, d.record(history[first-1]))
		d.must(err)
		done, err := d.collector.Collect(ctx)
		d.must(err)
		d.rebased += done.Rebased
	}
	for _, live := range history[first : at+1] {
		found, err := d.packs.Objects(ctx, rootOf(live))
		d.must(err)
		if len(found) == 0 || !slices.EqualFunc(found, distinct(live.objects), func(a, b manifest.Object) bool { return string(a.JSON) == string(b.JSON) }) {
			d.t.Fatalf("%s %s is not read as it was put", live.operator, live.version)
		}
	}
}

func (d *depot) put(key string, value []byte) {
	d.t.Helper()
	_, err := d.etcd.Put(d.t.Context(), key, string(value))
	d.must(err)
}

func (d *depot) record(r release) string {
	return d.keys.All() + v1alpha1.GroupName + "/clusterextensionrevisions/" + fmt.Sprintf("%s-%d", r.operator, r.number)
}

// sizes returns the bytes of keys and values, for packs and for everything else.
func (d *depot) sizes() (packs, rest int) {
	d.t.Helper()
	found, err := d.etcd.Get(d.t.Context(), d.prefix+"/", clientv3.WithPrefix())
	d.must(err)
	for _, kv := range found.Kvs {
		size := len(kv.Key) + len(kv.Value)
		if _, ok := d.keys.PackPartOf(string(kv.Key)); ok {
			packs += size
		} else {
			rest += size
		}
	}
	return packs, rest
}

func rootOf(r release) string {
	refs := make([]manifest.Ref, len(r.objects))
	for i, object := range r.objects {
		refs[i] = object.Ref
	}
	return pack.Root(refs)
}

func distinct(objects []manifest.Object) []manifest.Object {
	seen := map[manifest.Digest]bool{}
	return slices.DeleteFunc(slices.Clone(objects), func(o manifest.Object) bool {
		again := seen[o.Digest]
		seen[o.Digest] = true
		return again
	})
}

// sealed returns the record of a rolled-out revision.
func sealed(t *testing.T, r release, uid types.UID) []byte {
	t.Helper()
	name := fmt.Sprintf("%s-%d", r.operator, r.number)
	revision := &v1alpha1.ClusterExtensionRevision{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ClusterExtensionRevision"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Generation: 1, CreationTimestamp: metav1.Unix(0, 0),
			Labels: map[string]string{v1alpha1.ChainLabel: r.operator}, Annotations: map[string]string{v1alpha1.RequestedByAnnotation: "system:serviceaccount:operators:installer"}},
	}
	revision.Spec.Revision, revision.Spec.LifecycleState = int64(r.number), v1alpha1.LifecycleStateActive
	phase := v1alpha1.RevisionPhase{Name: "deploy"}
	for _, object := range r.objects {
		version := object.Version
		if object.Group != "" {
			version = object.Group + "/" + version
		}
		phase.Objects = append(phase.Objects, v1alpha1.RevisionObject{
			APIVersion: version, Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Digest: string(object.Digest), Size: int64(len(object.JSON)),
		})
	}
	revision.Spec.Phases = []v1alpha1.RevisionPhase{phase}
	for _, condition := range []string{v1alpha1.ConditionReady, "Available", v1alpha1.ConditionSucceeded, "Progressing", "Failing", "Stalled"} {
		revision.Status.Conditions = append(revision.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "RolledOut",
			Message: "all objects are as the revision says", ObservedGeneration: 1, LastTransitionTime: metav1.Unix(0, 0)})
	}
	plain, err := json.Marshal(revision)
	if err != nil {
		t.Fatal(err)
	}
	record, err := penstock.Format{Kind: "object", Magic: "PKO", Version: 1, Limit: penstock.MaxObjectBytes}.Seal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return record
}
