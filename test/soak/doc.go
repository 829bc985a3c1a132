// Package soak lives with Penstock for minutes as unkindly as it can: extensions
// are upgraded, paused, archived and deleted, their objects edited, robbed of
// labels and deleted, definitions removed, and the process killed. In the end every
// chain must be as the rule says, the process must not have grown, and the audit
// log must not have one write to an object that no revision named.
//
// It is run by `make soak`, not by `make test`.
package soak
