package resolve

import (
	"bufio"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/catalog/fbc"
)

// sharedData has real catalogs, and requests with the answers of OLM v1's resolver. It is not part
// of the repository.
const sharedData = "../../../shared/data/catalogs"

type upstreamCase struct {
	ID, Why  string
	Catalogs []struct {
		Name, File  string
		Priority    int32
		Labels      map[string]string
		Unavailable bool
	}
	Package, Version string
	Channels         []string
	Selector         *metav1.LabelSelector
	Policy           string
	Installed        *Installed
	Want             answer
}

type answer struct {
	Bundle, Version, Release, Catalog, Error string
	Deprecated                               *deprecated
}

type deprecated struct {
	Package  bool
	Channels []string
	Bundle   bool
}

// TestUpstream: each request gets OLM v1's answer. A bundle with dependencies is the exception:
// Penstock chooses it, and waits for its dependencies.
func TestUpstream(t *testing.T) {
	file, err := os.Open(filepath.Join(sharedData, "small-cases.jsonl"))
	if os.IsNotExist(err) {
		t.Skip("no shared data")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	configs := map[string]map[string]*fbc.Config{}
	tried := 0
	for lines := bufio.NewScanner(file); lines.Scan(); tried++ {
		var c upstreamCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		t.Run(c.ID, func(t *testing.T) {
			var catalogs []Catalog
			for _, one := range c.Catalogs {
				if configs[one.File] == nil {
					config, err := fbc.LoadDirectory(t.Context(), os.DirFS(filepath.Join(sharedData, one.File)), fbc.DefaultLimits())
					if err != nil {
						t.Fatal(err)
					}
					configs[one.File] = config.ByPackage()
				}
				catalogs = append(catalogs, Catalog{Name: one.Name, Labels: one.Labels, Priority: one.Priority, Unavailable: one.Unavailable, Config: configs[one.File][c.Package]})
			}
			resolution, err := Resolve(Request{
				Package: c.Package, Version: c.Version, Channels: c.Channels, Selector: c.Selector,
				SelfCertified: c.Policy == "SelfCertified", Installed: c.Installed,
			}, catalogs)
			if bundle, _, dependent := strings.Cut(strings.TrimPrefix(c.Want.Error, `validating bundle "`), `": bundle "`); dependent {
				if got := answered(resolution, err); got.Bundle != bundle || got.Error != "" {
					t.Errorf("%s: got %+v, want bundle %s", c.Why, got, bundle)
				}
				return
			}
			if diff := gocmp.Diff(c.Want, answered(resolution, err)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.Why, diff)
			}
		})
	}
	if tried < 52 {
		t.Errorf("tried %d cases, want 52 or more", tried)
	}
}

func answered(resolution *Resolution, err error) answer {
	if err != nil {
		return answer{Error: err.Error()}
	}
	got := answer{Bundle: resolution.Bundle.Name, Version: resolution.Version.Version.String(), Release: resolution.Version.ReleaseString(), Catalog: resolution.Catalog}
	found := deprecated{Package: resolution.Deprecation.Package != nil, Bundle: resolution.Deprecation.Bundle != nil}
	for _, one := range resolution.Deprecation.Channels {
		found.Channels = append(found.Channels, one.Reference.Name)
	}
	slices.SortFunc(found.Channels, cmp.Compare)
	if found.Package || found.Bundle || len(found.Channels) > 0 {
		got.Deprecated = &found
	}
	return got
}
