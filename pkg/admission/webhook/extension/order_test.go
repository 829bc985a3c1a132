package extension

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/webhooktest"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/order"
)

// TestDeletion: the deletion of a required extension needs an acknowledgement. While extensions
// cannot be listed, it is allowed with a warning.
func TestDeletion(t *testing.T) {
	requires, err := extension.ParseRequires("argocd>=1")
	if err != nil {
		t.Fatal(err)
	}
	dependent := order.Extension{Name: "shop", Installed: true, Requires: requires}
	deletes := func(annotations map[string]string, all []order.Extension, err error) webhook.Answer {
		r := webhooktest.Review(t, alice, written("1.0.0", annotations), nil)
		r.Operation, r.ObjectJSON, r.OldJSON = admissionv1.Delete, nil, r.ObjectJSON
		return Extensions(func(context.Context) ([]order.Extension, error) { return all, err }).mayDelete(t.Context(), r, nobody)
	}
	refused := deletes(nil, []order.Extension{dependent}, nil)
	if refused.Refusal == nil || strings.Contains(refused.Refusal.Message, "shop") || !strings.Contains(refused.Refusal.Message, "1 installed extensions require it; to continue") {
		t.Fatalf("it answers %+v", refused)
	}
	_, id, _ := strings.Cut(refused.Refusal.Message, extension.AcknowledgeDependentsAnnotation+"=")
	for name, answer := range map[string]webhook.Answer{
		"acknowledged":        deletes(map[string]string{extension.AcknowledgeDependentsAnnotation: id}, []order.Extension{dependent}, nil),
		"nobody requires it":  deletes(nil, []order.Extension{{Name: "shop", Installed: true}}, nil),
		"it is not installed": deletes(nil, []order.Extension{{Name: "shop", Requires: requires}}, nil),
	} {
		if answer.Refusal != nil || len(answer.Warnings) > 0 {
			t.Errorf("%s: it answers %+v", name, answer)
		}
	}
	if unknown := deletes(nil, nil, errors.New("no answer")); unknown.Refusal != nil || len(unknown.Warnings) != 1 {
		t.Errorf("extensions cannot be listed: it answers %+v", unknown)
	}
	if wrong := Extensions(nil).mayDelete(t.Context(), webhooktest.Review(t, alice, written("1.0.0", nil), nil), nobody); wrong.Refusal == nil {
		t.Error("it answers a creation")
	}
}

func nobody(string) bool { return false }
