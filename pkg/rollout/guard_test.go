package rollout

import (
	"errors"
	"strings"
	"testing"
)

// TestConversionAdvice: if a missing webhook prevents reading instances, the message has a remedy.
func TestConversionAdvice(t *testing.T) {
	advice := conversionAdvice("lamps.example.com", errors.New(`conversion webhook for example.com/v1alpha1, Kind=Lamp failed: Post "https://gone.light.svc:443/convert": service "gone" not found`))
	if !strings.Contains(advice, "kubectl patch crd lamps.example.com ") {
		t.Errorf("got %q, want a command", advice)
	}
	if advice := conversionAdvice("lamps.example.com", errors.New("connection refused")); advice != "" {
		t.Errorf("got %q for an error that is about something else", advice)
	}
}
