//go:build integration

package smoke_test

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/version"
)

// template: the image of a catalog follows the version of the cluster.
func template(s scenario) {
	var host version.Info
	if err := json.Unmarshal([]byte(s.Raw("GET", "/version", "")), &host); err != nil {
		s.t.Fatal(err)
	}
	s.Create(`{apiVersion: olm.operatorframework.io/v1, kind: ClusterCatalog, metadata: {name: template, annotations: {olm.catalogImageTemplate: "127.0.0.1:1/c:v{kube_major_version}.{kube_minor_version}"}},
		spec: {availabilityMode: Unavailable, source: {type: Image, image: {ref: "127.0.0.1:1/c:v0"}}}}`)
	want := fmt.Sprintf("127.0.0.1:1/c:v1.%s", host.Minor)
	s.Becomes("clustercatalog/template", ".spec.source.image.ref", want)
	s.Condition("clustercatalog/template", "TemplatesHaveResolved", "True", "AllTemplatesResolved")
	s.Condition("clustercatalog/template", "ResolvedImage", "True", want)

	s.Patch("clustercatalog/template", `{"spec":{"source":{"image":{"ref":"127.0.0.1:1/c:by-hand"}}}}`)
	s.Becomes("clustercatalog/template", ".spec.source.image.ref", want)
}
