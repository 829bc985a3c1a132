package receiver

import (
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/notify"
	"github.com/penstock-project/penstock/pkg/outbound"
)

// TestReceiver checks that the receiver gets the events that Penstock sends with its Secret.
func TestReceiver(t *testing.T) {
	const key = "0123456789abcdef"
	to := Start(t, key)
	secret := &corev1.Secret{}
	if err := yaml.Unmarshal([]byte(to.Secret("ns", "chat", key)), secret); err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{}
	for name, value := range secret.StringData {
		secret.Data[name] = []byte(value)
	}
	at, err := notify.ReceiverOf(secret)
	if err != nil {
		t.Fatal(err)
	}
	body, err := notify.Encode(notify.Of("s", notify.Subject{Kind: "ConfigurationPlan", Name: "p"}, notify.Fact{Type: notify.Failed}))
	if err != nil {
		t.Fatal(err)
	}
	if err := at.Send(t.Context(), outbound.Dialer{}, body, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := to.Await(t, "it", Of("Failed", "p", true)); got.Key != key {
		t.Errorf("the event is signed with %q", got.Key)
	}
	to.Answer(http.StatusTeapot)
	if err := at.Send(t.Context(), outbound.Dialer{}, body, time.Now()); err == nil {
		t.Error("the receiver accepted the event")
	}
}
