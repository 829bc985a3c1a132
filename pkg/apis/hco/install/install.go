// Package install registers all served versions of the hco.kubevirt.io API with one call.
package install

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/penstock-project/penstock/pkg/apis/hco"
	"github.com/penstock-project/penstock/pkg/apis/hco/v1alpha1"
)

// Install adds the hub and the served versions, their defaults, conversions and field labels to
// scheme. It panics if a type cannot be registered: that is a mistake in this source code, which no
// caller can handle.
func Install(scheme *runtime.Scheme) {
	steps := []func(*runtime.Scheme) error{
		hco.AddToScheme,
		v1alpha1.AddToScheme,
		func(s *runtime.Scheme) error { return s.SetVersionPriority(v1alpha1.SchemeGroupVersion) },
	}
	for _, step := range steps {
		if err := step(scheme); err != nil {
			panic(fmt.Sprintf("registering %s: %v", hco.GroupName, err))
		}
	}
}
