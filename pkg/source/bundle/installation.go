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

// installation is a bundle with where and how it is installed, and what was made of it.
type installation struct {
	*contents
	config  config.Config
	options Options
	made    []directory.Located
	places  map[manifest.ID]int
}

// objects makes all objects of the installation.
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

// add takes an object that was made of the ClusterServiceVersion as a whole.
func (in *installation) add(object any) error { return in.addFrom(object, nil) }

// addFrom takes an object that was made of a part of the ClusterServiceVersion.
func (in *installation) addFrom(object any, path []any) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("ClusterServiceVersion %s: %s: %w", in.csv.Metadata.Name, fieldName(path), err)
	}
	return in.addContent(content, "", path)
}

// addContent takes an object whose field key has what stands at a path of the
// ClusterServiceVersion.
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

// place keeps an object once. Two equal ones are one, as permissions may repeat, and a manifest
// of the bundle takes the place of a ServiceAccount that the ClusterServiceVersion only names; two
// others of one name are an error.
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
