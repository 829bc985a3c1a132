package extension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/patch"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/extension/values"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/signer"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/bundle"
	"github.com/penstock-project/penstock/pkg/source/bundle/config"
	"github.com/penstock-project/penstock/pkg/source/chart"
	"github.com/penstock-project/penstock/pkg/source/packed"
)

// content is the rendered content of an image. It is immutable.
type content struct {
	source.Rendered
	reference string
	// signed records the signers of the image; nil without a signature policy.
	signed  *signer.Record
	refs    []phaseRefs
	patched []patch.Applied
}

// digest returns the digest of the objects by phase, of the image and of its signers.
func (c *content) digest() string {
	of := fmt.Append(nil, c.reference, c.refs)
	if c.signed != nil {
		of = fmt.Append(of, c.signed.Signers)
	}
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:])
}

// phaseRefs lists the objects of a phase by identity and digest.
type phaseRefs struct {
	name string
	refs []contentRef
}

// contentRef is an object by identity and digest.
type contentRef struct {
	manifest.Ref
	// withoutStatus is the digest in revisions from before status was kept; empty for an object
	// without status.
	withoutStatus manifest.Digest
}

// render pulls an image for a user and renders its objects, in a background job. It ends the pass
// until there is a result, which causes the next pass. The last result for the same digest is
// reused, so that a refused revision is retried without a pull.
func (s *scope) render(ctx context.Context, identity maker.Identity, desired *desired) (*content, *maker.Outcome) {
	digest := desired.digest()
	if known := s.rendered.find(s.extension.Name, digest); known != nil {
		return known, nil
	}
	if stopped := s.mayPull(ctx, identity); stopped != nil {
		return nil, stopped
	}
	made, ready := s.jobs.Do(ctx, s.extension.Name, digest,
		func(ctx context.Context) (out made) {
			out.content, out.stopped = s.pull(ctx, identity, desired)
			return out
		},
		func() { s.queue.Add(s.extension.Name) })
	if !ready {
		return nil, maker.Stop(maker.Rendering, "", "")
	}
	if made.content != nil {
		s.rendered.keep(s.extension.Name, digest, made.content)
	}
	return made.content, made.stopped
}

// made is the result of a job: content, or the reason for none.
type made struct {
	content *content
	// diff has the changes that the next revision would make.
	diff    *olmv1alpha1.RevisionDiff
	stopped *maker.Outcome
}

func (s *scope) pull(ctx context.Context, identity maker.Identity, desired *desired) (*content, *maker.Outcome) {
	// All ServiceAccounts of an author share the author's slots.
	author := identity.Author.GetName()
	var pulled *Pulled
	var err error
	if waiting := s.Pool.Pull(ctx, author, func() {
		began := s.Clock.Now()
		pulled, err = s.Images.Pull(ctx, author, desired.catalog(), desired.ref)
		s.measured.Pulled(s.Clock.Since(began), err)
	}); waiting != nil {
		return nil, retry(status.PullFailed, waiting)
	}
	if err != nil {
		var refused *image.Refused
		if errors.As(err, &refused) && refused.SignatureFormat != "" {
			return nil, stop(status.SignatureFormatUnsupported, err.Error(), "").Later()
		}
		if refused != nil && refused.Unverified {
			return nil, stop(status.SignatureVerificationFailed, err.Error(), "").Later()
		}
		if refused != nil {
			return nil, stop(status.Unsupported, err.Error(), "")
		}
		return nil, retry(status.PullFailed, err)
	}
	defer pulled.Close()
	format, err := packed.FormatOf(pulled.Kind, pulled.FS)
	if err == nil && !slices.Contains(desired.formats, format) {
		err = fmt.Errorf("it is a %s, and a %s is expected", format, inWords(desired.formats))
	}
	if err != nil {
		return nil, stop(status.Unsupported, fmt.Sprintf("image %s: %s", pulled.Reference, err), "")
	}
	var made *content
	var stopped *maker.Outcome
	if waiting := s.Pool.Render(ctx, author, func() { made, stopped = s.renderAs(ctx, identity, desired, format, pulled) }); waiting != nil {
		return nil, retry(status.Failed, waiting)
	}
	if stopped != nil {
		return nil, stopped
	}
	if made.refs, err = s.digests(made.Phases); err != nil {
		return nil, stop(status.InvalidManifests, fmt.Sprintf("image %s: %s", pulled.Reference, err), "")
	}
	return made, nil
}

// patch applies the extension's patches, before any other step reads the objects.
func (c *content) patch(value string) *maker.Outcome {
	if value == "" {
		return nil
	}
	patches, err := patch.Parse(value)
	if err == nil {
		var objects []*manifest.Object
		for _, phase := range c.Phases {
			for i := range phase.Objects {
				objects = append(objects, &phase.Objects[i])
			}
		}
		c.patched, err = patch.Apply(patches, objects)
	}
	if err != nil {
		return stop(status.InvalidConfiguration, fmt.Sprintf("annotation %s: %s", extension.PatchesAnnotation, err), "")
	}
	return nil
}

// keep removes values of Secrets from warnings, and refuses objects other than Secrets that contain
// them.
func (c *content) keep(values *values.Values) *maker.Outcome {
	if !values.HasSecrets() {
		return nil
	}
	for i := range c.Warnings {
		c.Warnings[i].Message = values.Mask(c.Warnings[i].Message)
	}
	for _, phase := range c.Phases {
		for _, object := range phase.Objects {
			if err := values.Exposed(object); err != nil {
				return stop(status.InvalidConfiguration, err.Error(), "have the bundle or chart take the value from a Secret; or move it to a ConfigMap when it is none")
			}
		}
	}
	return nil
}

// patches lists the fields that patches have written, in at most extension.MaxPatched bytes.
func (c *content) patches() string {
	for keep := len(c.patched); keep > 0; keep /= 2 {
		encoded, err := json.Marshal(c.patched[:keep])
		if err == nil && len(encoded) <= extension.MaxPatched {
			return string(encoded)
		}
	}
	return ""
}

func inWords(formats []packed.Format) string {
	words := make([]string, len(formats))
	for i, format := range formats {
		words[i] = string(format)
	}
	return strings.Join(words, " or ")
}

func (s *scope) renderAs(ctx context.Context, identity maker.Identity, desired *desired, format packed.Format, pulled *Pulled) (*content, *maker.Outcome) {
	renderer := packed.Renderer{Format: format}
	switch format {
	case packed.Bundle:
		renderer.Bundle = bundle.Options{
			InstallNamespace: desired.Namespace, Config: desired.configuration(), Certificates: desired.Certificates,
			AcceptRequirements: true, Providers: s.providersOf,
		}
		// Without the cluster's version, a warning names the required version.
		if stopped := s.mayUse(ctx, identity.Who()); stopped == nil {
			if cluster, err := s.Capabilities.Capabilities(ctx, desired.Target); err == nil {
				renderer.Bundle.KubeVersion = cluster.Version
			}
		}
	case packed.Chart:
		if stopped := s.mayUse(ctx, identity.Who()); stopped != nil {
			return nil, stopped
		}
		cluster, err := s.Capabilities.Capabilities(ctx, desired.Target)
		if err != nil {
			return nil, retry(status.Failed, fmt.Errorf("reading what the cluster serves, for the chart: %w", err))
		}
		renderer.Chart = chart.Options{Release: desired.Name, Namespace: desired.Namespace, Cluster: cluster}
		if len(desired.configuration()) > 0 {
			if err := json.Unmarshal(desired.configuration(), &renderer.Chart.Values); err != nil {
				return nil, stop(status.InvalidConfiguration, fmt.Sprintf("the configuration must be an object with the values of the chart: %s", err), "")
			}
		}
	case packed.Manifests:
		if len(desired.configuration()) > 0 {
			return nil, stop(status.InvalidConfiguration, "configuration has no effect on plain manifests", "")
		}
	}
	rendered, err := renderer.Render(ctx, pulled.FS)
	var configuration *config.Errors
	var unknown *chart.UnknownError
	var version *chart.VersionError
	switch {
	case ctx.Err() != nil:
		return nil, retry(status.Failed, ctx.Err())
	case errors.As(err, &unknown):
		return nil, retry(status.Failed, fmt.Errorf("image %s: %w", pulled.Reference, err))
	case errors.As(err, &version):
		// No watch reports the upgrade of the cluster.
		return nil, stop(status.Unsupported, fmt.Sprintf("image %s: %s: upgrade the cluster first, or choose another version", pulled.Reference, err), "").Later()
	case errors.As(err, &configuration):
		return nil, stop(status.InvalidConfiguration, configuration.InWordsOfOLM(), configuring(desired, configuration))
	case err != nil:
		return nil, stop(status.Unsupported, fmt.Sprintf("image %s: %s", pulled.Reference, err), "")
	}
	if stopped := desired.check(rendered, pulled.Reference); stopped != nil {
		return nil, stopped
	}
	made := &content{Rendered: rendered, reference: pulled.Reference, signed: pulled.Signed.Of(pulled.Reference)}
	if stopped := made.patch(desired.Patches); stopped != nil {
		return nil, stopped
	}
	if stopped := made.keep(desired.Values); stopped != nil {
		return nil, stopped
	}
	return made, nil
}

// configuring describes the faults of a bundle's configuration. If only the namespace to watch is
// wrong, it adds the command to correct it.
func configuring(desired *desired, wrong *config.Errors) string {
	watch := desired.Namespace
	switch {
	case wrong.Modes.AllNamespaces || len(wrong.List) != 1 || wrong.List[0].Path != "watchNamespace":
		return wrong.Error()
	case !wrong.Modes.OwnNamespace:
		watch = "NAMESPACE"
	}
	return fmt.Sprintf(`%s; name the namespace that the operator watches: kubectl patch clusterextension %s --type=merge -p '{"spec":{"config":{"configType":"Inline","inline":{"watchNamespace":%q}}}}'`,
		wrong.Error(), desired.Name, watch)
}

// check compares the content of an image with its entry in the catalog.
func (d *desired) check(rendered source.Rendered, reference string) *maker.Outcome {
	switch {
	case d.bundle == nil || rendered.Package == "":
	case rendered.Package != d.pkg:
		return stop(status.Unsupported, fmt.Sprintf("image %s is package %s, and catalog %s says that it is package %s", reference, rendered.Package, d.bundle.Catalog, d.pkg), "")
	case rendered.Version != d.bundle.Version:
		return stop(status.Unsupported, fmt.Sprintf("image %s is version %s, and catalog %s says that it is version %s", reference, rendered.Version, d.bundle.Catalog, d.bundle.Version), "")
	}
	return nil
}

// digests returns the digests of the objects, as a revision has them.
func (s *scope) digests(phases []source.Phase) ([]phaseRefs, error) {
	out := make([]phaseRefs, 0, len(phases))
	for _, phase := range phases {
		refs := phaseRefs{name: phase.Name}
		for _, object := range phase.Objects {
			sealed, err := s.Digester.FromJSON(object.JSON)
			if err != nil {
				return nil, err
			}
			earlier, had, err := s.Digester.WithoutStatus(sealed)
			if err != nil {
				return nil, err
			}
			ref := contentRef{Ref: sealed.Ref}
			if had {
				ref.withoutStatus = earlier.Digest
			}
			refs.refs = append(refs.refs, ref)
		}
		out = append(out, refs)
	}
	return out, nil
}

func (c *content) warnings() []string {
	var out []string
	for _, one := range c.Warnings {
		if line := strings.Join(strings.Fields(one.String()), " "); !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

func (c *content) size() int {
	size := 0
	for _, phase := range c.Phases {
		for _, object := range phase.Objects {
			size += len(object.JSON)
		}
	}
	return size
}

// isIn reports whether a revision has the same objects in the same phases. If the revision was made
// from the same image before status was kept, a missing status does not count.
func (c *content) isIn(revision *olmv1alpha1.ClusterExtensionRevision) bool {
	sameImage := revision.Annotations[olmv1alpha1.ReferenceAnnotation] == c.reference
	return slices.EqualFunc(c.refs, revision.Spec.Phases, func(want phaseRefs, has olmv1alpha1.RevisionPhase) bool {
		return want.name == has.Name && slices.EqualFunc(want.refs, has.Objects, func(ref contentRef, entry olmv1alpha1.RevisionObject) bool {
			digest := manifest.Digest(entry.Digest)
			return ref.ID.Kind == entry.Kind && ref.ID.Namespace == entry.Namespace && ref.ID.Name == entry.Name && (digest == ref.Digest || digest != "" && sameImage && digest == ref.withoutStatus)
		})
	})
}

// yieldsAs reports whether a revision yields exactly the desired fields. spec.yield of a revision
// is immutable.
func yieldsAs(revision *olmv1alpha1.ClusterExtensionRevision, desired *desired) bool {
	return apiequality.Semantic.DeepEqual(revision.Spec.Yield, desired.Yield)
}

// renderings caches the last rendered content of some extensions, whose revision is refused
// repeatedly.
type renderings struct {
	mu   *sync.Mutex
	kept map[string]lastRendering
}

type lastRendering struct {
	digest  string
	content *content
	size    int
}

// maxRendered bounds the cache, in bytes of manifests. Most extensions have 0.1 MB, and at most 16
// MB.
const maxRendered = 32 << 20

func newRenderings() renderings {
	return renderings{mu: &sync.Mutex{}, kept: map[string]lastRendering{}}
}

func (r renderings) find(name, digest string) *content {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.kept[name]; known.digest == digest {
		return known.content
	}
	return nil
}

func (r renderings) keep(name, digest string, made *content) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, name)
	size, all := made.size(), 0
	for _, one := range r.kept {
		all += one.size
	}
	for other, one := range r.kept {
		if all+size <= maxRendered {
			break
		}
		delete(r.kept, other) // any of them: it can be rendered again
		all -= one.size
	}
	r.kept[name] = lastRendering{digest: digest, content: made, size: size}
}

func (r renderings) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.kept, name)
}
