// Package soak runs Penstock for minutes under disturbances. Extensions are upgraded, paused,
// archived and deleted. Their objects are edited, unlabelled and deleted, definitions are removed,
// and the process is killed. In the end every chain must match the rule, and the process must not
// have grown. The audit log must not show a write to an object that no revision names.
//
// With FAULTS it runs three replicas on an external etcd, with kills, cut networks and frozen
// processes (see package replicas), and checks every acknowledged write.
//
// `make test-slice N=soak` runs it; `make test` does not.
package soak
