package verification

import (
	"errors"
	"fmt"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// compare returns an error if a provenance (SLSA v1 or v0.2) does not meet the requirements.
func (p *Provenance) compare(statement *intoto.Statement) error {
	var builder, source string
	switch predicate := statement.GetPredicate(); statement.GetPredicateType() {
	case "https://slsa.dev/provenance/v1":
		builder = at(predicate, "runDetails", "builder", "id")
		source = source1(predicate)
	case "https://slsa.dev/provenance/v0.2":
		builder = at(predicate, "builder", "id")
		source = at(predicate, "invocation", "configSource", "uri")
	default:
		return fmt.Errorf("the bundle is an attestation of type %q, and a provenance (SLSA v1 or v0.2) is expected", statement.GetPredicateType())
	}
	var errs []error
	if builder != p.Builder {
		errs = append(errs, fmt.Errorf("the provenance names the builder %q, want %q", builder, p.Builder))
	}
	if found := repository(source); found != repository(p.Repository) {
		errs = append(errs, fmt.Errorf("the provenance names the repository %q, want %q", found, p.Repository))
	}
	return errors.Join(errs...)
}

// source1 returns the repository of a build's source: from its parameters, or else the first Git
// repository among its dependencies.
func source1(predicate *structpb.Struct) string {
	for _, path := range [][]string{{"workflow", "repository"}, {"source", "uri"}, {"source", "repository"}} {
		if found := at(predicate, append([]string{"buildDefinition", "externalParameters"}, path...)...); found != "" {
			return found
		}
	}
	for _, one := range field(predicate, "buildDefinition").GetStructValue().GetFields()["resolvedDependencies"].GetListValue().GetValues() {
		if uri := at(one.GetStructValue(), "uri"); strings.HasPrefix(uri, "git+") {
			return uri
		}
	}
	return ""
}

func field(of *structpb.Struct, name string) *structpb.Value { return of.GetFields()[name] }

func at(of *structpb.Struct, path ...string) string {
	for _, name := range path[:len(path)-1] {
		of = field(of, name).GetStructValue()
	}
	return field(of, path[len(path)-1]).GetStringValue()
}

// repository returns a URI without the Git scheme and the revision.
func repository(uri string) string {
	uri = strings.TrimPrefix(uri, "git+")
	if at := strings.LastIndexByte(uri, '@'); at > strings.LastIndex(uri, "://")+2 && at > strings.IndexByte(uri, '.') {
		uri = uri[:at]
	}
	return strings.TrimSuffix(strings.TrimSuffix(uri, "/"), ".git")
}
