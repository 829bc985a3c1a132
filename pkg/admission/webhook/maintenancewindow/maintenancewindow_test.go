package maintenancewindow

import (
	"fmt"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
)

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct{ spec, refused, warned string }{
		"Valid":       {spec: `{"type":"Allow","schedule":"0 22 * * Sat","duration":"4h"}`},
		"Typo":        {spec: `{"type":"Allow","schedule":"0 25 * * Sat","duration":"4h"}`, refused: `MaintenanceWindow.penstock.dev "nights" is invalid: spec.schedule: Invalid value: "0 25 * * Sat"`},
		"Zone":        {spec: `{"type":"Allow","schedule":"0 22 * * Sat","duration":"4h","timeZone":"CEST"}`, refused: "spec.timeZone"},
		"NoDuration":  {spec: `{"type":"Allow","schedule":"0 22 * * Sat","duration":"4 hours"}`, refused: "nights"},
		"EitherOfTwo": {spec: `{"type":"Deny","schedule":"0 0 1 * Mon","duration":"4h"}`, warned: "spec.schedule"},
	} {
		t.Run(name, func(t *testing.T) {
			answer := decide(webhook.Review{Name: "nights", ObjectJSON: fmt.Appendf(nil, `{"apiVersion":"penstock.dev/v1alpha1","kind":"MaintenanceWindow","metadata":{"name":"nights"},"spec":%s}`, tc.spec)})
			if got := answer.Refusal; (got != nil) != (tc.refused != "") || got != nil && !strings.Contains(got.Message, tc.refused) {
				t.Errorf("refused: %+v, want %q", got, tc.refused)
			}
			if got := strings.Join(answer.Warnings, "\n"); !strings.HasPrefix(got, tc.warned) || tc.warned == "" && got != "" {
				t.Errorf("warned: %q, want %q", got, tc.warned)
			}
		})
	}
}
