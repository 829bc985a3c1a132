package release

import (
	"encoding/json"
	"fmt"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"

	"github.com/penstock-project/penstock/pkg/sigstore"
)

// provenance verifies that the same signer attests each file, and checks the builder and the
// source.
func (v *verification) provenance() (string, error) {
	if v.sums == nil {
		return "", errUnsigned
	}
	signed, err := v.read(Provenance, sigstore.LargestBundle)
	if err != nil {
		return "", err
	}
	statement, err := v.by.Statement(signed)
	if err != nil {
		return "", fmt.Errorf("verifying %s: %w", Provenance, err)
	}
	if statement.GetPredicateType() != ProvenanceType {
		return "", fmt.Errorf("the predicate type of %s is %q, want %q", Provenance, statement.GetPredicateType(), ProvenanceType)
	}
	attested := map[string]string{}
	for _, subject := range statement.GetSubject() {
		attested[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	for name, want := range v.sums {
		if attested[name] != want {
			return "", fmt.Errorf("%s has the SHA-256 %q for %s, and %s has %s", Provenance, attested[name], name, Checksums, want)
		}
	}
	from, err := originOf(statement)
	if err != nil {
		return "", err
	}
	if v.wanted.Builder != "" && from.builder != v.wanted.Builder {
		return "", fmt.Errorf("the builder is %q, want %q", from.builder, v.wanted.Builder)
	}
	if v.wanted.Source != "" && (from.modified || !ofRepository(from.source, v.wanted.Source)) {
		return "", fmt.Errorf("the source is %q, want %q", from.said(), v.wanted.Source)
	}
	return fmt.Sprintf("made by %s from %s", from.builder, from.said()), nil
}

// origin is a provenance's statement about how the files were created.
type origin struct {
	builder string
	// source is the source dependency with its commit.
	source   string
	modified bool
}

func (o origin) said() string {
	if o.modified {
		return o.source + ", with changes that are in no commit"
	}
	return o.source
}

func originOf(statement *intoto.Statement) (origin, error) {
	var predicate struct {
		BuildDefinition struct {
			InternalParameters struct {
				Modified bool `json:"modified"`
			} `json:"internalParameters"`
			ResolvedDependencies []struct {
				URI    string            `json:"uri"`
				Digest map[string]string `json:"digest"`
			} `json:"resolvedDependencies"`
		} `json:"buildDefinition"`
		RunDetails struct {
			Builder struct {
				ID string `json:"id"`
			} `json:"builder"`
		} `json:"runDetails"`
	}
	content, err := statement.GetPredicate().MarshalJSON()
	if err == nil {
		err = json.Unmarshal(content, &predicate)
	}
	if err != nil {
		return origin{}, fmt.Errorf("reading the predicate of %s: %w", Provenance, err)
	}
	found := origin{builder: predicate.RunDetails.Builder.ID, modified: predicate.BuildDefinition.InternalParameters.Modified}
	for _, dependency := range predicate.BuildDefinition.ResolvedDependencies {
		if commit := dependency.Digest["gitCommit"]; commit != "" {
			found.source = dependency.URI + ", commit " + commit
			break
		}
	}
	if found.builder == "" || found.source == "" {
		return origin{}, fmt.Errorf("%s names no builder, or no commit", Provenance)
	}
	return found, nil
}

// ofRepository reports whether a source, such as git+https://example.com/a@refs/tags/v1, is from a
// repository.
func ofRepository(source, repository string) bool {
	rest, is := strings.CutPrefix(strings.TrimPrefix(source, "git+"), strings.TrimSuffix(repository, ".git"))
	rest = strings.TrimPrefix(rest, ".git")
	return is && (strings.HasPrefix(rest, "@") || strings.HasPrefix(rest, ","))
}
