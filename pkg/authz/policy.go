package authz

// policyGroup is the group of rights that are not on objects. No API is served under it.
const policyGroup = "policy.penstock.dev"

// Refusal begins the message with which admission plugin Privilege refuses a revision. Programs that
// create revisions for a user recognise missing rights by it, because refusals by admission share one
// reason.
const Refusal = "a revision may only do what its requester may do"

// Bypass returns the right to skip the checks of admission plugin Privilege.
func Bypass(extension string) Right {
	return Right{Verb: "bypass", Group: policyGroup, Resource: "privilegechecks", Name: extension}
}

// Begin returns the right to begin an extension with a revision without objects.
//
// The name of an extension is valuable: its revision numbers are never reused, and later rollbacks
// use its earlier content. To begin an extension with objects, a user needs the rights to the
// objects, which Privilege checks. Without objects there would be nothing to check.
func Begin(extension string) Right {
	return Right{Verb: "begin", Group: policyGroup, Resource: "extensions", Name: extension}
}

// Use returns the right to let Penstock act in another cluster with the rights of its kubeconfig.
// Penstock cannot check rights on single objects there: that cluster has other users and
// namespaces, even if they have the same names.
func Use(target string) Right {
	return Right{Verb: "use", Group: policyGroup, Resource: "targets", Name: target}
}
