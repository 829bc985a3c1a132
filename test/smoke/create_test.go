//go:build integration

package smoke_test

// create: Penstock rolls out a revision. Reads show identities and digests instead of content.
// Creating the same revision again changes nothing.
func create(s scenario) {
	shop := s.revision(1).
		Phase("settings", s.configMap("settings", "currency=EUR"), s.secret("token", "password=hunter2")).
		Phase("deploy", s.deployment("web", "example.com/web:v1"))
	s.Create(shop.String())
	s.succeeds("cer/create-1")
	s.Is("configmap/settings", ".data.currency", "EUR")
	s.Is("deployment/web", ".status.availableReplicas", "1")
	s.Condition("cer/create-1", "Ready", "True")
	s.Is("cer/create-1", ".status.requestedBy.username", "admin")

	stored := s.JSON("cer/create-1")
	s.Says(stored, `"kind":"ConfigMap"`, `"name":"settings"`, `"digest":"sha256:`)
	s.Lacks(stored, "currency", "hunter2", "aHVudGVyMg")
	s.Says(s.Raw("GET", "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions/create-1/manifests", ""), `"currency":"EUR"`)

	s.Apply(shop.String())
	before := s.Field("cer/create-1", ".metadata.resourceVersion")
	s.Apply(shop.String())
	s.Is("cer/create-1", ".metadata.resourceVersion", before)
}
