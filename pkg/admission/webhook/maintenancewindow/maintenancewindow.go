// Package maintenancewindow has the webhook of MaintenanceWindows. It refuses an invalid schedule or
// time zone, and warns about a schedule that is easy to misread.
//
// It fails open: an invalid window holds upgrades, and its status reports the error.
package maintenancewindow

import (
	"context"
	"fmt"
	"net/http"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/penstock-project/penstock/pkg/admission/webhook"
	"github.com/penstock-project/penstock/pkg/admission/webhook/authored"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
	"github.com/penstock-project/penstock/pkg/window"
)

// Webhook returns the webhook of MaintenanceWindows.
func Webhook() webhook.Webhook {
	return webhook.Webhook{
		Name: "maintenancewindow", Authenticated: true,
		Decide: func(_ context.Context, r webhook.Review) webhook.Answer { return decide(r) },
		Registration: authored.Registration(maintenancewindow.Resource, admissionregistrationv1.ClusterScope, admissionregistrationv1.Ignore,
			admissionregistrationv1.MatchCondition{Name: "changes-the-spec", Expression: "request.operation == 'CREATE' || " + authored.Spec("object") + " != " + authored.Spec("oldObject")}),
	}
}

func decide(r webhook.Review) webhook.Answer {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(r.ObjectJSON); err != nil {
		return webhook.Refuse(fmt.Sprintf("%s cannot be read: %s", r, err))
	}
	read, err := maintenancewindow.From(object)
	if err != nil {
		return webhook.Refuse(err.Error())
	}
	if errs := maintenancewindow.Validate(&read.Spec); len(errs) > 0 {
		status := apierrors.NewInvalid(maintenancewindow.Kind.GroupKind(), r.Name, errs).Status()
		status.Code = http.StatusUnprocessableEntity
		return webhook.Answer{Refusal: &status}
	}
	if doubt := window.Doubt(read.Spec.Schedule); doubt != "" {
		return webhook.Answer{Warnings: []string{"spec." + doubt}}
	}
	return webhook.Answer{}
}
