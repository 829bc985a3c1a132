package app

import (
	"bytes"
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// TestBodiesAreWithheld: client-go logs nothing of a Secret, at any verbosity, as JSON and as
// protobuf, through the logger of a context and through the global logger.
func TestBodiesAreWithheld(t *testing.T) {
	const hush = "hunter2"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "the Secret has `+hush+`"`)
		w.Header().Set("X-Shown", "shown")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"},"stringData":{"k":"` + hush + `"}}`))
	}))
	t.Cleanup(server.Close)

	var log bytes.Buffer
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	set := func(name, value string) {
		if err := flags.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	WithholdBodies()
	set("logtostderr", "false")
	klog.SetOutput(&log)
	t.Cleanup(func() {
		set("v", "0")
		set("logtostderr", "true")
		klog.SetLogFilter(nil)
	})
	contexts := map[string]context.Context{
		"process": t.Context(), "named": klog.NewContext(t.Context(), klog.Background().WithName("named").WithValues("body", hush, "a", "b")),
	}
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		// A transport takes its verbosity from the time when the client is created.
		set("v", "10")
		client := kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, WarningHandler: rest.NoWarnings{}, ContentConfig: rest.ContentConfig{ContentType: contentType}})
		for _, verbosity := range []string{"6", "8", "9", "10"} {
			for name, ctx := range contexts {
				log.Reset()
				set("v", verbosity)
				if _, err := client.CoreV1().Secrets("x").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"k": hush}}, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				klog.FromContext(ctx).Info("A line", "body", hush)
				klog.Flush()
				got := log.String()
				// Dumps of protobuf break lines after 16 bytes.
				if strings.Contains(got, "hunt") || strings.Contains(got, "68 75 6e") || strings.Contains(got, "unter") {
					t.Errorf("%s, --v=%s, %s: the log has the Secret:\n%s", contentType, verbosity, name, got)
				}
				if want := verbosity != "6"; strings.Contains(got, "X-Shown: shown") != want {
					t.Errorf("%s, --v=%s, %s: shows headers, want %t:\n%s", contentType, verbosity, name, want, got)
				}
				if want := verbosity != "6"; strings.Contains(got, `"Request Body" body="(withheld)"`) != want && name == "process" {
					t.Errorf("%s, --v=%s: says that a body is withheld, want %t:\n%s", contentType, verbosity, want, got)
				}
			}
		}
	}
}
