package bundle

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/source/bundle/config"
	"github.com/penstock-project/penstock/pkg/source/directory"
)

// installation is a bundle with its options, and the objects rendered so far.
type installation struct {
	*contents
	config  config.Config
	options Options
	made    []directory.Located
	places  map[manifest.ID]int
}

func (in *installation) objects() ([]directory.Located, error) {
	in.places = map[manifest.ID]int{}
	for _, generate := range []func() error{
		in.serviceAccounts,
		in.permissions,
		in.clusterPermissions,
		in.customResourceDefinitions,
		in.additional,
		in.conversions,
		in.deployments,
		in.services,
		in.webhookConfigurations,
		in.certificates,
	} {
		if err := generate(); err != nil {
			return nil, err
		}
	}
	return in.made, nil
}

func (in *installation) strategy() strategy { return in.csv.Spec.Install.Spec }

func (in *installation) namespaced(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: in.options.InstallNamespace}
}

// add adds an object that is generated from the whole ClusterServiceVersion.
func (in *installation) add(object any) error { return in.addFrom(object, nil) }

func (in *installation) addFrom(object any, path []any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("ClusterServiceVersion %s: %s: %w", in.csv.Metadata.Name, fieldName(path), err)
	}
	return in.addContent(content, "", path)
}

// addContent adds an object. Its field key has the content at a path of the ClusterServiceVersion,
// so errors name the lines there.
func (in *installation) addContent(content map[string]any, key string, path []any) error {
	object, err := manifest.Canonical(content)
	if err != nil {
		return in.refuse(in.csvFile, path, "%s: makes an object that is not valid: %v", fieldName(path), err)
	}
	located := in.csvFile.Made(object, key, path...)
	if key == "" {
		located.Line = in.csvFile.LineAt(path...)
	}
	return in.place(located)
}

// place adds an object, each identity only once. Equal objects are merged, because permissions may
// repeat. A manifest of the bundle replaces the ServiceAccount that is generated from the
// ClusterServiceVersion. Other duplicates are an error.
func (in *installation) place(located directory.Located) error {
	if i, twice := in.places[located.ID]; twice {
		first := in.made[i]
		if bytes.Equal(first.JSON, located.JSON) {
			return nil
		}
		if located.GroupKind() == (schema.GroupKind{Kind: "ServiceAccount"}) && first.File == in.csvFile.File {
			in.made[i] = located
			return nil
		}
		return fail(located, located.Line, "%s is already made of %s:%d, with other content", located.ID, first.File, first.Line)
	}
	in.places[located.ID] = len(in.made)
	in.made = append(in.made, located)
	return nil
}
