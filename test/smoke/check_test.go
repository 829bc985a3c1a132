//go:build integration

package smoke_test

// check: one command confirms that the installation is complete.
func check(s scenario) {
	said := s.types(0, "check")
	s.Says(said, "✓ apiservice v1alpha1.olm.operatorframework.io", "✓ apiservice v1alpha1.hco.kubevirt.io", "✓ may deploy and pause: yes")
	s.Lacks(said, "✗")
	s.Says(s.types(0, "version"), "kubectl-penstock v0.0.0-test", "penstock         devel")
	s.Says(s.server.Fetch(s.t, s.cluster.Config(), "/metrics"), "penstock_")
	s.Says(s.server.Fetch(s.t, s.cluster.Config(), "/readyz"), "ok")
}
