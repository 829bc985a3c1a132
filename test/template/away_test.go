//go:build integration

package template_test

import (
	"fmt"
	"strings"
)

// away: while the API of the named object does not answer, the image and the conditions stay.
// Updates continue when it answers again.
func away(w shared) {
	alice := w.person("alice", w.maySee("one"))
	w.define("one")
	w.sample("one", "v1")
	w.apply(alice, w.source("catalog", "quay.io/c:"+w.variable("one")))
	before := w.await("catalog", "it is resolved", resolvedTo("quay.io/c:v1"))
	service := "v1." + w.group()
	// Without this label, kube-apiserver does not make the APIService local again.
	w.MustKubectl("patch", "apiservice", service, "--type=merge", "-p",
		`{"metadata":{"labels":{"kube-aggregator.kubernetes.io/automanaged":null}},"spec":{"service":{"namespace":"default","name":"away"},"insecureSkipTLSVerify":true}}`)
	w.t.Cleanup(func() { w.Kubectl("delete", "--ignore-not-found", "apiservice", service) })
	w.eventually("the API does not answer", func() bool {
		return strings.Contains(w.Kubectl("get", "--raw", "/apis/"+w.group()+"/v1").String(), "unable to handle the request")
	})
	w.apply(alice, w.source("catalog", "quay.io/d:"+w.variable("one")))
	w.eventually("Penstock has noticed", func() bool {
		return strings.Contains(w.server.Log(), "reading Sample."+w.group()+"/v1 away/one: the cluster answered ServiceUnavailable")
	})
	after := w.live("catalog")
	if image(after) != "quay.io/c:v1" || fmt.Sprint(conditions(after)) != fmt.Sprint(conditions(before)) {
		w.t.Errorf("the image is %s with %v, before it had %v", image(after), conditions(after), conditions(before))
	}
	w.MustKubectl("delete", "apiservice", service)
	w.await("catalog", "the API answers again", resolvedTo("quay.io/d:v1"))
}
