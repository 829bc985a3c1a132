package authz

// policyGroup is where the rights are that are none on objects: nothing is served there.
const policyGroup = "policy.penstock.dev"

// Refusal begins the message with which admission plugin Privilege refuses a revision. Programs that
// create revisions for a user recognise missing rights by it, because refusals by admission share one
// reason.
const Refusal = "a revision may only do what its requester may do"

// Bypass is the right not to be checked by admission plugin Privilege.
func Bypass(extension string) Right {
	return Right{Verb: "bypass", Group: policyGroup, Resource: "privilegechecks", Name: extension}
}

// Begin is the right to begin an extension with a revision that has no objects.
//
// The name of an extension is worth something: its numbers are used for ever, and what
// succeeded in it is gone back to. A user who begins one with objects has the rights to
// them, which is what Privilege asks for; without objects there would be nothing to ask.
func Begin(extension string) Right {
	return Right{Verb: "begin", Group: policyGroup, Resource: "extensions", Name: extension}
}

// Use returns the right to let Penstock act in another cluster with the rights of its kubeconfig.
// Rights on single objects cannot be checked: users and namespaces of the host do not exist in that
// cluster, or are others of the same name.
func Use(target string) Right {
	return Right{Verb: "use", Group: policyGroup, Resource: "targets", Name: target}
}
