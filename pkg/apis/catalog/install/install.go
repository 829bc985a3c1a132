// Package install registers every version of the catalog.penstock.dev API that this
// program serves, so that a server needs one call to know the group.
package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/catalog"
	"github.com/penstock-project/penstock/pkg/apis/catalog/v1alpha1"
)

// Install adds the hub and the served versions, their defaults, conversions and
// field labels to scheme. It panics when a type cannot be registered, which is
// a mistake in this source tree and nothing a caller could handle.
func Install(scheme *runtime.Scheme) {
	steps := []func(*runtime.Scheme) error{
		catalog.AddToScheme,
		v1alpha1.AddToScheme,
		func(s *runtime.Scheme) error { return s.SetVersionPriority(v1alpha1.SchemeGroupVersion) },
	}
	for _, step := range steps {
		if err := step(scheme); err != nil {
			panic(fmt.Sprintf("registering %s: %v", catalog.GroupName, err))
		}
	}
}
