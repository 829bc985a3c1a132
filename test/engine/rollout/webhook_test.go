//go:build integration

package rollout_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// webhook registers an admission webhook for the ConfigMaps of one namespace. judge answers from
// another goroutine.
func (w targetCluster) webhook(ns string, mutating bool, judge func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) {
	w.t.Helper()
	var called atomic.Bool
	server := httptest.NewTLSServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		if review.Request.Name == "canary" {
			called.Store(true)
			review.Response = allowed()
		} else {
			review.Response = judge(review.Request)
		}
		review.Response.UID = review.Request.UID
		review.Request = nil
		out.Header().Set("Content-Type", "application/json")
		// The client may have timed out already, in a case that tests timeouts.
		_ = json.NewEncoder(out).Encode(review)
	}))
	w.t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(w.User("outsider", "system:masters").Config())
	if err != nil {
		w.t.Fatal(err)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	reach := admissionregistrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority}
	fail, none, all, second := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.AllScopes, int32(1)
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &all},
	}}
	here := &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": ns}}
	name, hooks := metav1.ObjectMeta{Name: ns + ".example.com"}, client.AdmissionregistrationV1()
	if mutating {
		_, err = hooks.MutatingWebhookConfigurations().Create(w.t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: name,
			Webhooks: []admissionregistrationv1.MutatingWebhook{{Name: name.Name, ClientConfig: reach, Rules: rules, FailurePolicy: &fail, SideEffects: &none,
				TimeoutSeconds: &second, NamespaceSelector: here, AdmissionReviewVersions: []string{"v1"}}}}, metav1.CreateOptions{})
	} else {
		_, err = hooks.ValidatingWebhookConfigurations().Create(w.t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: name,
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{Name: name.Name, ClientConfig: reach, Rules: rules, FailurePolicy: &fail, SideEffects: &none,
				TimeoutSeconds: &second, NamespaceSelector: here, AdmissionReviewVersions: []string{"v1"}}}}, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	// kube-apiserver learns of the webhook with a delay.
	poll.Eventually(w.t, "the webhook to be asked", func() (bool, string) {
		canary := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "canary"}}
		_, err := client.CoreV1().ConfigMaps(ns).Create(w.t.Context(), canary, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return called.Load(), fmt.Sprint(err)
	})
}

// allowed admits a request, with an optional JSON patch.
func allowed(patch ...map[string]any) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{Allowed: true}
	if len(patch) > 0 {
		raw, err := json.Marshal(patch)
		if err != nil {
			panic(err) // a mistake in a test
		}
		kind := admissionv1.PatchTypeJSONPatch
		response.Patch, response.PatchType = raw, &kind
	}
	return response
}

func denied(message string) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: message, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}}
}
