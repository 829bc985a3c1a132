// Package soak lives with Penstock for minutes as unkindly as it can: extensions
// are upgraded, paused, archived and deleted, their objects edited, robbed of
// labels and deleted, definitions removed, and the process killed. In the end every
// chain must be as the rule says, the process must not have grown, and the audit
// log must not have one write to an object that no revision named.
//
// With FAULTS it is three replicas on an external etcd that have to live through kills,
// cut networks and frozen processes (see package replicas), and what is judged is every
// write that was acknowledged.
//
// It is run by `make test-slice N=soak`, not by `make test`.
package soak
