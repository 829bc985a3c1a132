package adopt

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/diff"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/store/archive"
)

// Taken is an adopted installation of Helm or OLM: its revisions, and the objects of the newest
// revision.
type Taken struct {
	// Revisions of the new extension, newest first.
	Revisions []Revision
	// Objects of the revision that becomes active, in rollout order.
	Objects []Object
	// Warnings list omitted parts, and parts that the server may refuse.
	Warnings []string

	extension string
	highest   int64
	owners    []archive.Owner
	// foreign returns the state and the owner of an object that has another owner than the
	// installation.
	foreign func(*unstructured.Unstructured) (State, string)
	// again compares also objects that the extension already owns, because the installer may have
	// changed them.
	again   bool
	archive []byte
}

// Revision is one revision of the extension, taken from a revision of Helm or OLM.
type Revision struct {
	Name string
	// State is Active or Archived.
	State v1alpha1.LifecycleState
	// Status and Chart are as Helm or OLM reports them.
	Status, Chart string
	Objects       int

	number         int64
	version, cause string
	// at is the time of the rollout, in whole seconds. succeeded is true when the rollout was
	// complete.
	at                  time.Time
	succeeded           bool
	labels, annotations map[string]string
	phases              []source.Phase
}

func (r *Revision) take(phases []source.Phase, digester manifest.Digester) error {
	r.Objects = source.Count(phases)
	for _, phase := range phases {
		digested := source.Phase{Name: phase.Name}
		for _, object := range phase.Objects {
			object, err := digester.FromJSON(object.JSON)
			if err != nil {
				return err
			}
			digested.Objects = append(digested.Objects, object)
		}
		r.phases = append(r.phases, digested)
	}
	return nil
}

func (r *Revision) objects() []manifest.Object {
	var all []manifest.Object
	for _, phase := range r.phases {
		all = append(all, phase.Objects...)
	}
	return all
}

// digesterFor returns a digester with its own key for Secrets. The server computes its own digests.
// The digests of the archive must only be equal for equal installations, and must reveal nothing to
// users who cannot read the content.
func digesterFor(content string) manifest.Digester {
	key := sha256.Sum256([]byte("penstock adopt-helm\n" + content))
	return manifest.Digester{SecretKey: key[:]}
}

// pack returns the archive of the extension. Archives of equal installations are equal.
func (t *Taken) pack() ([]byte, error) {
	var out bytes.Buffer
	writer, err := archive.NewWriter(&out)
	if err != nil {
		return nil, err
	}
	chain := archive.Chain{Name: t.extension, Highest: t.highest}
	for i := range t.Revisions {
		one := &t.Revisions[i]
		chain.Revisions = append(chain.Revisions, one.number)
		// The history is sorted by rising number.
		row := one.row()
		row.Counts = t.counts(i)
		chain.History = append([]archive.Row{row}, chain.History...)
	}
	if err := writer.Chain(chain); err != nil {
		return nil, err
	}
	for i := range t.Revisions {
		one := &t.Revisions[i]
		spec, err := json.Marshal(one.spec(false))
		if err != nil {
			return nil, err
		}
		err = writer.Revision(archive.Revision{
			Number: one.number, Labels: one.labels, Annotations: one.annotations, Owners: t.owners, CreatedAt: one.at,
			Succeeded: one.succeeded, CompletedAt: one.completed(), Spec: spec,
		}, one.objects())
		if err != nil {
			return nil, err
		}
	}
	err = writer.Close()
	return out.Bytes(), err
}

// counts compares the i-th revision with the revision before it.
func (t *Taken) counts(i int) *archive.Counts {
	own, before := t.Revisions[i].refs(), []manifest.Ref(nil)
	if i+1 < len(t.Revisions) {
		before = t.Revisions[i+1].refs()
	}
	changes := diff.Count(before, own)
	return &archive.Counts{Objects: len(own), Added: changes.Added, Changed: changes.Changed, Removed: changes.Removed}
}

func (r *Revision) refs() []manifest.Ref {
	var refs []manifest.Ref
	for _, object := range r.objects() {
		refs = append(refs, object.Ref)
	}
	return refs
}

func (r *Revision) row() archive.Row {
	row := archive.Row{
		Revision: r.number, Version: r.version, CreatedAt: r.at, CompletedAt: r.completed(), Result: v1alpha1.ResultIncomplete, Cause: r.cause,
	}
	switch {
	case r.State == v1alpha1.LifecycleStateActive:
		row.Result, row.CompletedAt = v1alpha1.ResultProgressing, time.Time{} // the controller determines the result in this cluster
	case r.succeeded:
		row.Result = v1alpha1.ResultSucceeded
	}
	return row
}

func (r *Revision) completed() time.Time {
	if !r.succeeded {
		return time.Time{}
	}
	return r.at
}

// spec returns the spec of a revision, with manifests inline or by digest.
func (r *Revision) spec(inline bool) v1alpha1.ClusterExtensionRevisionSpec {
	spec := v1alpha1.ClusterExtensionRevisionSpec{
		Revision: r.number, LifecycleState: r.State, CollisionProtection: v1alpha1.CollisionProtectionIfNoController,
	}
	for _, phase := range r.phases {
		out := v1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			if inline {
				out.Objects = append(out.Objects, v1alpha1.RevisionObject{Object: &v1alpha1.Manifest{Raw: object.JSON}})
				continue
			}
			out.Objects = append(out.Objects, v1alpha1.RevisionObject{
				APIVersion: object.APIVersion(), Kind: object.Kind, Namespace: object.Namespace, Name: object.Name, Digest: string(object.Digest),
			})
		}
		spec.Phases = append(spec.Phases, out)
	}
	return spec
}
