// Package framework contains the building blocks of all tests against a real control plane. It has
// only subpackages:
//
//	plane      etcd, kube-apiserver and, on request, the controllers of workloads,
//	           as processes; for programs (make demo, make cluster-up) and tests
//	cluster    a plane for one test: it fails the test instead of returning errors
//	cable      a connection to a server that a test can cut or slow down
//	penstock   the program: built once, served, killed and restarted
//	pod        the container of a Pod, run as a kubelet would, from the files of an image
//	client     kubectl get, create, patch, wait … in the process of the test
//	plugin     kubectl penstock, as a user types it, in the process of the test
//	objects    the smallest valid ConfigMap, Secret, Deployment …
//	drafts     ClusterExtensionRevisions as a user writes them
//	packages   OLM packages: bundles and catalogs
//	widgets    a kind of another owner, and a user-defined profile for it
//	registry   an image registry with a certificate and a password
//	promtool   expressions of alerts and of the dashboard, on the series of a run
//	port       ports for programs that need a known port
//	poll       waits for changes that no watch reports
//	pools      simulates the Machine Config Operator
//	replicas   several replicas of the program on a shared etcd, faults between them,
//	           and a check of the result
//	rule       checks whether the cluster matches its revisions
//	hostile    harmful requests and expressions, for tests and benchmarks
//
// The subject of a test decides its folder:
//
//	test/smoke      a tour: each capability once, on one control plane (make test)
//	test/engine     the engine against a kube-apiserver, without our API
//	test/server     the API server: API conventions, rights, certificates, stores, replicas
//	test/extension  ClusterExtensions: catalogs, resolution, Helm, OLM conformance
//	test/chartkind  kinds whose objects install charts
//	test/template   image templates of catalogs
//	test/e2e        the program as a user runs it, by kubectl
//	test/console    the console in a browser, a separate module
//	test/soak       minutes of faults (make test-slice N=soak)
//	test/node       real Pods: kubelet, containerd and kube-proxy (make node-test)
//	test/bench      measurements (make bench SUITE=reads and more), a separate module
//	test/demo       the demonstration (make demo)
//
// A test begins with cluster.Start. A control plane costs two seconds of processor time. So a test
// that can share a control plane becomes a subtest of an existing test. A test that needs a host
// without a former server borrows a plane from a cluster.Pool.
package framework
