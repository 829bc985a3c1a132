package validation

import (
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

func TestHelmRelease(t *testing.T) {
	with := func(value string) *olm.ClusterExtensionRevision {
		revision := &olm.ClusterExtensionRevision{}
		if value != "" {
			revision.Annotations = map[string]string{v1alpha1.HelmReleaseAnnotation: value}
		}
		return revision
	}
	for name, tc := range map[string]struct {
		reason          string
		value, old, bad string
	}{
		"none":         {},
		"a release":    {value: "shop/web:7"},
		"dots":         {value: "shop/web.eu:7"},
		"no revision":  {value: "shop/web", bad: "such as shop/web:7"},
		"revision 0":   {value: "shop/web:0", bad: "such as shop/web:7"},
		"no namespace": {value: "web:7", bad: "such as shop/web:7"},
		"no name":      {value: "shop/:7", bad: "such as shop/web:7"},
		"as before":    {reason: "what an earlier release took stays usable", value: "x", old: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := validateHelmRelease(with(tc.value), with(tc.old))
			if tc.bad == "" && len(errs) > 0 || tc.bad != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.bad)) {
				t.Errorf("%s: %v", tc.reason, errs)
			}
		})
	}
}
