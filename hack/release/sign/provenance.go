package sign

import (
	"encoding/hex"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/penstock-project/penstock/pkg/release"
)

const (
	repository = "https://github.com/penstock-project/penstock"
	// buildType is the address of the page that explains the parameters.
	buildType = repository + "/blob/main/docs/reference/releases.md#provenance"
	// builder is the id of hack/release on a maintainer's machine: SLSA build level 1.
	builder = repository + "/tree/main/hack/release"
)

// Build describes the build of the files.
type Build struct {
	Version, Commit string
	// Modified is true if the checkout had uncommitted changes.
	Modified bool
	// Platforms are the platforms of the release, such as linux/amd64.
	Platforms []string
	// Modules is the digest of go.sum in hexadecimal, which contains the sums of all modules.
	Modules string
}

// Attest returns the statement about files. files maps names to digests. The statement has no
// times: the same commit gives the same statement.
func Attest(b Build, files map[string]string) (*intoto.Statement, error) {
	platforms := make([]any, len(b.Platforms))
	for i, p := range b.Platforms {
		platforms[i] = p
	}
	parameters, err := structpb.NewStruct(map[string]any{
		"version": b.Version, "platforms": platforms,
		"command": fmt.Sprintf("make release VERSION=%s PLATFORMS=%s", b.Version, strings.Join(b.Platforms, ",")),
	})
	if err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	internal, err := structpb.NewStruct(map[string]any{"modified": b.Modified})
	if err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters, InternalParameters: internal,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				{Uri: "git+" + repository + "@refs/tags/" + b.Version, Digest: map[string]string{"gitCommit": b.Commit}},
				{Name: "go.sum", Digest: map[string]string{"sha256": b.Modules}},
				{Uri: "pkg:golang/std@" + strings.TrimPrefix(runtime.Version(), "go"), Name: "Go"},
			},
		},
		RunDetails: &provenance.RunDetails{Builder: &provenance.Builder{Id: builder}},
	}
	if err := predicate.Validate(); err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	content, err := protojson.Marshal(predicate)
	if err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	made := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: release.ProvenanceType, Predicate: &structpb.Struct{}}
	if err := protojson.Unmarshal(content, made.Predicate); err != nil {
		return nil, fmt.Errorf("writing the provenance: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := hex.DecodeString(files[name]); err != nil {
			return nil, fmt.Errorf("the digest of %s is %q: %w", name, files[name], err)
		}
		made.Subject = append(made.Subject, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": files[name]}})
	}
	return made, nil
}
