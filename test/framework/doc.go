// Package framework holds what all tests against a real control plane are made of.
// There is nothing in it but its packages:
//
//	plane      etcd, kube-apiserver and, if asked for, the controllers of workloads,
//	           as processes; for programs (make demo, make cluster-up) and tests
//	cluster    a plane for one test: it fails the test instead of returning errors
//	cable      a way to a server that can be cut, and be long
//	penstock   the program: built once, served, killed and started again
//	pod        the container of a Pod, run as a kubelet would, from the files of an image
//	client     kubectl get, create, patch, wait … in the process of the test
//	plugin     kubectl penstock, as a user types it, in the process of the test
//	objects    the smallest ConfigMap, Secret, Deployment … that a kube-apiserver takes
//	drafts     ClusterExtensionRevisions as a person writes them
//	packages   packages of OLM: bundles, and catalogs of them
//	widgets    a kind that somebody else owns, and a profile of it that a user defines
//	registry   a registry for images, with a certificate and a password
//	promtool   expressions of alerts and of the dashboard, on series of a run
//	port       ports for programs that are told theirs
//	poll       waiting for what no watch tells
//	pools      what the Machine Config Operator does, without machines
//	replicas   several replicas of the program on a shared etcd, faults between them,
//	           and what must be true of all of them afterwards
//	rule       what the cluster must hold, computed from the revisions that there are
//	hostile    requests and expressions that do harm, for tests and benchmarks
//
// The subject of a test decides where it is:
//
//	test/smoke      a tour: each capability once, whole, on one control plane (make test)
//	test/engine     the engine against a kube-apiserver, without our API
//	test/server     the API server: its manners, rights, certificates, stores, replicas
//	test/extension  ClusterExtensions: catalogs, resolution, Helm, what comes from OLM
//	test/chartkind  kinds that are made of charts
//	test/template   image templates of catalogs
//	test/e2e        the program as a user runs it, by kubectl
//	test/console    the console in a browser, a module of its own
//	test/soak       minutes of trouble (make test-slice N=soak)
//	test/node       real Pods: kubelet, containerd and kube-proxy (make node-test)
//	test/bench      measurements (make bench SUITE=reads and others), a module of its own
//	test/demo       the demonstration (make demo)
//
// A test begins with cluster.Start. A control plane costs two seconds of a
// processor: what can live beside the tests that are there joins them as a subtest, and
// what needs a host on which no server has run borrows one from a cluster.Pool.
package framework
