package privilege

import (
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

// proposed returns r as a proposal of Penstock.
func proposed(r *revision) *revision {
	return r.annotated(v1alpha1.ProposedAnnotation, "true").as("Paused")
}

// TestChanges covers additional fields, with and without an effect on objects in the cluster.
func TestChanges(t *testing.T) {
	web, config, changed := deployment(t, "web"), configMap(t, "config", "1"), configMap(t, "config", "2")
	all := rule("create,patch,delete", "*", "configmaps,deployments")
	cases := map[string]struct {
		reason    string
		situation func(*situation)
		act       func(*situation) error
		code      int32
		says      []string
	}{
		"Follows": {
			reason:    "status would tell what Helm has, to those who cannot look there",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.updates(r, r.annotated(v1alpha1.HelmReleaseAnnotation, "shop/web:7"))
			},
			code: forbidden, says: []string{"list secrets in namespace shop (for the Helm release web that the revision names)"},
		},
		"FollowsFromTheStart": {
			reason:    "also from the start",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act: func(w *situation) error {
				return w.creates(rev(1, web).annotated(v1alpha1.HelmReleaseAnnotation, "shop/web:7"))
			},
			code: forbidden, says: []string{"list secrets in namespace shop"},
		},
		"FollowsAllowed": {
			reason:    "who may",
			situation: func(w *situation) { w.may("lighthouse", all).may("shop", rule("list", "", "secrets")) },
			act: func(w *situation) error {
				return w.creates(rev(1, web).annotated(v1alpha1.HelmReleaseAnnotation, "shop/web:7"))
			},
		},
		"FollowsLikeTheRest": {
			reason:    "a rollback, or the next revision, of an extension that does so already",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act: func(w *situation) error {
				w.holds(rev(1, web).annotated(v1alpha1.HelmReleaseAnnotation, "shop/web:7"))
				return w.creates(rev(2, web).annotated(v1alpha1.HelmReleaseAnnotation, "shop/web:8"))
			},
		},
		"Unpause": {
			reason:    "what was drafted is done now, at the word of who says so",
			situation: func(*situation) {},
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.updates(r.as("Paused"), r) },
			code:      forbidden, says: []string{"create,patch deployments.apps lighthouse/web"},
		},
		"UnpauseAllowed": {
			reason:    "who may",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.updates(r.as("Paused"), r) },
		},
		"ApprovedForLater": {
			reason:    "the approver is asked when they approve, whenever it begins",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(1, web).ownedBy("lighthouse").annotated(v1alpha1.ProposedAnnotation, "true").as("Paused")
				w.holds(r)
				return w.updates(r, r.annotated(v1alpha1.ApproveNotBeforeAnnotation, "2026-11-28T21:00:00Z"))
			},
			code: forbidden, says: []string{"create,patch,delete deployments.apps lighthouse/web"},
		},
		"ProposalApproved": {
			reason:    "nobody was asked about its owner when it was proposed: garbage collection deletes it with that",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act: func(w *situation) error {
				r := rev(1, web).ownedBy("lighthouse")
				w.holds(r)
				return w.updates(r.annotated(v1alpha1.ProposedAnnotation, "true").as("Paused"), r)
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"UpgradeApproved": {
			reason:    "the owner is that of the extension already",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act: func(w *situation) error {
				r := rev(2, web).ownedBy("lighthouse")
				w.holds(rev(1, web).ownedBy("lighthouse"), r)
				return w.updates(r.annotated(v1alpha1.ProposedAnnotation, "true").as("Paused"), r)
			},
		},
		"UnpausedBelowAProposal": {
			reason:    "a proposal is withdrawn without a question: what is below it is the newest, and prunes",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")).has(1, config) },
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, config), r.as("Paused"), proposed(rev(3, web, config)))
				return w.updates(r.as("Paused"), r)
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config"},
		},
		"ArchivedBelowAProposal": {
			reason:    "what a proposal wants is kept by nobody when it is withdrawn",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r, proposed(rev(2, web)))
				return w.updates(r, r.as("Archived"))
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"CreatedBesideAProposal": {
			reason:    "nothing of a proposal is in the cluster, so that nothing of it goes",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")).has(1, web) },
			act: func(w *situation) error {
				w.holds(rev(1, web), proposed(rev(2, web, config)))
				return w.creates(rev(3, web))
			},
		},
		"OwnedLikeAProposal": {
			reason:    "nobody was asked about the owner of a proposal",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act: func(w *situation) error {
				w.holds(proposed(rev(1, web).ownedBy("lighthouse")))
				return w.creates(rev(2, web).ownedBy("lighthouse"))
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"UnpausePrunes": {
			reason:    "completing it archives the older one",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")).has(1, config) },
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, config), r.as("Paused"))
				return w.updates(r.as("Paused"), r)
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config"},
		},
		"Owned": {
			reason:    "garbage collection deletes a revision whose owner is not there, and may delete anything",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.updates(r, r.ownedBy("nobody"))
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web", "!create"},
		},
		"OwnedFromTheStart": {
			reason:    "also when it was not there from the start",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act:       func(w *situation) error { return w.creates(rev(1, web).ownedBy("nobody")) },
			code:      forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"OwnedLikeTheRest": {
			reason:    "an owner of the chain is one of it all, no matter who joins",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act: func(w *situation) error {
				w.holds(rev(1, web).ownedBy("lighthouse"))
				return w.creates(rev(2, web).ownedBy("lighthouse"))
			},
		},
		"OwnedByAnotherName": {
			reason:    "a uid under another name is of nobody",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).ownedBy("lighthouse")
				w.holds(r)
				renamed := r.as(r.Spec.LifecycleState)
				renamed.OwnerReferences[0].Name = "other"
				return w.updates(r, renamed)
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"OwnedAndAcknowledged": {
			reason:    "one thing does not hide the other",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.updates(r, r.acknowledging("widgets.example.com").ownedBy("nobody"))
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web", "delete customresourcedefinitions.apiextensions.k8s.io widgets.example.com"},
		},
		"OwnedAfterAnArchivedOne": {
			reason:    "who gave an archived revision its owner was asked for next to nothing",
			situation: func(w *situation) { w.has(2, web) },
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, web).as("Archived").ownedBy("nobody"), r)
				return w.updates(r, r.ownedBy("nobody"))
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"SucceedsSooner": {
			reason:    "what it replaces goes before the user who made it wanted that",
			situation: func(w *situation) { w.has(1, config).has(2, web) },
			act: func(w *situation) error {
				r := rev(2, web).soaking(3600)
				w.holds(rev(1, config), r)
				return w.updates(r, r.soaking(0))
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config", "!deployments"},
		},
		"SucceedsWithoutMetric": {
			reason:    "it counts as successful without the answer that the user who made it wanted",
			situation: func(w *situation) { w.has(1, config).has(2, web) },
			act: func(w *situation) error {
				r := rev(2, web).measured("errors", "latency")
				w.holds(rev(1, config), r)
				return w.updates(r, r.measured("latency"))
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config", "!deployments"},
		},
		"SucceedsSoonerAndPaused": {
			reason:    "nothing goes until somebody lets it go on, who is asked then",
			situation: func(w *situation) { w.has(1, config).has(2, web) },
			act: func(w *situation) error {
				r := rev(2, web).soaking(3600)
				w.holds(rev(1, config), r)
				return w.updates(r, r.soaking(0).as("Paused"))
			},
		},
		"SucceedsSoonerAndIsArmed": {
			reason:    "one thing does not hide the other",
			situation: func(w *situation) { w.has(1, config).has(2, web).may("lighthouse", rule("create,patch", "*", "*")) },
			act: func(w *situation) error {
				r := rev(2, web).soaking(3600).rollingBack(9)
				w.holds(rev(1, config), r)
				return w.updates(r, r.soaking(0).rollingBack(8))
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config"},
		},
		"SucceedsSoonerWithNothingBefore": {
			reason:    "nothing goes",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).soaking(3600)
				w.holds(r)
				return w.updates(r, r.soaking(0))
			},
		},
		"SucceedsLater": {
			reason:    "everything stays for longer",
			situation: func(w *situation) { w.has(1, config).has(2, web) },
			act: func(w *situation) error {
				r := rev(2, web).soaking(60)
				w.holds(rev(1, config), r)
				return w.updates(r, r.soaking(3600))
			},
		},
		"HasSucceeded": {
			reason:    "the delay means nothing any more",
			situation: func(w *situation) { w.has(1, config).has(2, web) },
			act: func(w *situation) error {
				r := rev(2, web).soaking(3600).successful()
				w.holds(rev(1, config), r)
				return w.updates(r, r.soaking(0))
			},
		},
		"NotKeptAnyMore": {
			reason:    "a user who deletes it later deletes what they believe to be kept",
			situation: func(w *situation) { w.has(1, web) },
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.updates(r.orphaning(), r) },
			code:      forbidden, says: []string{"delete deployments.apps lighthouse/web", "!patch"},
		},
		"KeptFromNowOn": {
			reason:    "a user who deletes it later leaves what they believe to go",
			situation: func(w *situation) { w.has(1, web) },
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.updates(r, r.orphaning()) },
			code:      forbidden, says: []string{"patch deployments.apps lighthouse/web", "!delete"},
		},
		"KeptByFinalizer": {
			reason:    "the finalizer of garbage collection says the same",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				kept := r.as(r.Spec.LifecycleState)
				kept.Finalizers = []string{"orphan"}
				return w.updates(r, kept)
			},
			code: forbidden, says: []string{"patch deployments.apps lighthouse/web", "!delete"},
		},
		"DeletionAcknowledged": {
			reason:    "what was held back goes",
			situation: func(w *situation) { w.has(1, web, config) },
			act: func(w *situation) error {
				r := rev(1, web, config).as("Archived")
				w.holds(r, rev(2, web))
				return w.updates(r, r.answering("1-0123456789"))
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config", "!web"},
		},
		"DeletionAcknowledgedAllowed": {
			reason:    "who may delete it",
			situation: func(w *situation) { w.has(1, web, config).may("lighthouse", rule("delete", "", "configmaps")) },
			act: func(w *situation) error {
				r := rev(1, web, config).as("Archived")
				w.holds(r, rev(2, web))
				return w.updates(r, r.answering("1-0123456789"))
			},
		},
		"DeletionNotAcknowledgedAnyMore": {
			reason:    "nothing goes on because of that",
			situation: func(w *situation) { w.has(1, web, config) },
			act: func(w *situation) error {
				r := rev(1, web, config)
				w.holds(r)
				return w.updates(r.answering("1-0123456789"), r)
			},
		},
		"HoldReleased": {
			reason:    "the owner brings what was rolled back again",
			situation: func(w *situation) { w.has(3, config) },
			act: func(w *situation) error {
				r := rev(3, config)
				w.holds(rev(1, config).as("Archived"), rev(2, web).as("Archived"), r)
				return w.updates(r, r.releasing("lighthouse-3"))
			},
			code: forbidden, says: []string{"create,patch deployments.apps lighthouse/web", "delete configmaps lighthouse/config"},
		},
		"HoldReleasedAllowed": {
			reason: "who may do what the owner does then",
			situation: func(w *situation) {
				w.has(3, config).may("lighthouse", rule("create,patch", "apps", "deployments"), rule("delete", "", "configmaps"))
			},
			act: func(w *situation) error {
				r := rev(3, config)
				w.holds(rev(1, config).as("Archived"), rev(2, web).as("Archived"), r)
				return w.updates(r, r.releasing("lighthouse-3"))
			},
		},
		"HoldReleasedForWhatIsGone": {
			reason:    "nobody knows what the owner brings",
			situation: func(w *situation) { w.has(3, config) },
			act: func(w *situation) error {
				r := rev(3, config)
				w.holds(rev(1, config).as("Archived"), r)
				return w.updates(r, r.releasing("lighthouse-3"))
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config"},
		},
		"HoldNotReleasedAnyMore": {
			reason:    "nothing goes on because of that",
			situation: func(w *situation) { w.has(3, config) },
			act: func(w *situation) error {
				r := rev(3, config)
				w.holds(r)
				return w.updates(r.releasing("lighthouse-3"), r)
			},
		},
		"OrphanKeepsForOthers": {
			reason: "what carries the content of a revision that was given up is not this one's to leave",
			situation: func(w *situation) {
				w.has(2, config).may("lighthouse", rule("create,patch", "*", "configmaps,deployments"))
			},
			act: func(w *situation) error {
				r := rev(1, config).orphaning()
				w.holds(r, rev(2, config).as("Archived"))
				return w.deletes(r)
			},
			code: forbidden, says: []string{"delete configmaps lighthouse/config"},
		},
		"RemovesTheWayBack": {
			reason:    "an armed revision goes back further then, and nobody was asked about that",
			situation: func(w *situation) { w.has(3, web, config) },
			act: func(w *situation) error {
				r := rev(2, web).as("Archived").successful()
				w.holds(rev(1, config).as("Archived").successful(), r, rev(3, web, config).rollingBack(5))
				return w.deletes(r)
			},
			code: forbidden, says: []string{"create,patch configmaps lighthouse/config", "delete deployments.apps lighthouse/web"},
		},
		"ArmedAboveNothing": {
			reason:    "one without objects is never gone back to",
			situation: func(w *situation) { w.has(2, web).may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act: func(w *situation) error {
				w.holds(rev(1).as("Archived").successful())
				return w.creates(rev(2, web).rollingBack(5))
			},
		},
		"BeginsWithNothing": {
			reason:    "names are worth something, and there would be nothing else to ask about",
			situation: func(*situation) {},
			act:       func(w *situation) error { return w.creates(rev(1)) },
			code:      forbidden, says: []string{"begin extensions.policy.penstock.dev lighthouse"},
		},
		"BeginsWithNothingAllowed": {
			reason:    "who may",
			situation: func(w *situation) { w.may("", rule("begin", "policy.penstock.dev", "extensions", "lighthouse")) },
			act:       func(w *situation) error { return w.creates(rev(1)) },
		},
		"BeginsWithObjects": {
			reason:    "the rights to them are asked, and no other",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments")) },
			act:       func(w *situation) error { return w.creates(rev(1, web)) },
		},
		"GoesOnWithNothing": {
			reason:    "then there is something that goes, and that is asked",
			situation: func(w *situation) { w.has(1, web).may("lighthouse", rule("delete", "apps", "deployments")) },
			act:       func(w *situation) error { w.holds(rev(1, web)); return w.creates(rev(2)) },
		},
		"Disowned": {
			reason:    "without an owner it stays",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.updates(r.ownedBy("lighthouse"), r)
			},
		},
		"ImportedBelow": {
			reason:    "of two that are imported the newer one ends the other",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "*", "configmaps,deployments")) },
			act:       func(w *situation) error { w.beside(rev(2, web)); return w.creates(rev(1, web, config)) },
			code:      forbidden, says: []string{"delete configmaps lighthouse/config", "!web"},
		},
		"ImportedAbove": {
			reason:    "in whichever order they come",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "*", "configmaps,deployments")) },
			act:       func(w *situation) error { w.beside(rev(1, web, config)); return w.creates(rev(2, web)) },
			code:      forbidden, says: []string{"delete configmaps lighthouse/config", "!web"},
		},
		"ImportedPaused": {
			reason:    "a paused one ends nothing before somebody says so",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "*", "configmaps,deployments")) },
			act:       func(w *situation) error { w.beside(rev(2, web).as("Paused")); return w.creates(rev(1, web, config)) },
		},
		"Pause": {
			reason:    "pausing does nothing",
			situation: func(*situation) {},
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.updates(r, r.as("Paused")) },
		},
		"Metadata": {
			reason:    "so do labels",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				labelled := r.as(r.Spec.LifecycleState)
				labelled.Labels = map[string]string{"a": "b"}
				return w.updates(r, labelled)
			},
		},
		"Status": {
			reason:    "it says what may be deleted: whatever somebody may do, it is not for them to write",
			situation: func(w *situation) { w.may("", rule("*", "*", "*")) },
			act: func(w *situation) error {
				r := rev(1, web)
				return w.plugin().Validate(t.Context(), attributes(admission.Update, r.successful(), r, "status"), nil)
			},
			code: forbidden, says: []string{"nobody but Penstock writes it"},
		},
		"Rollback": {
			reason:    "the request to roll back is not the create that it makes",
			situation: func(*situation) {},
			act: func(w *situation) error {
				return w.plugin().Validate(t.Context(), attributes(admission.Create, rev(1, web), nil, "rollback"), nil)
			},
		},
		"CreateArmed": {
			reason:    "rolling back by itself is done in nobody's name: it is asked about before",
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch,delete", "apps", "deployments")) },
			act: func(w *situation) error {
				w.holds(rev(1, config).as("Archived").successful())
				return w.creates(rev(2, web).rollingBack(5))
			},
			code: forbidden, says: []string{"create,patch configmaps lighthouse/config"},
		},
		"Arm": {
			reason: "arming a rollout that goes wrong is asking for the way back",
			situation: func(w *situation) {
				w.may("lighthouse", rule("create,patch,delete", "", "configmaps"))
			},
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, config).successful(), r)
				return w.updates(r, r.rollingBack(5))
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web", "!config"},
		},
		"Sooner": {
			reason:    "so is letting it fail sooner",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, config), r)
				return w.updates(r.rollingBack(5), r.rollingBack(1))
			},
			code: forbidden, says: []string{"create,patch configmaps lighthouse/config"},
		},
		"FailsByMetric": {
			reason:    "so is letting a metric fail it",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(2, web).rollingBack(5)
				w.holds(rev(1, config), r)
				return w.updates(r, r.measured("errors"))
			},
			code: forbidden, says: []string{"create,patch configmaps lighthouse/config"},
		},
		"Later": {
			reason:    "more time is none",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, config), r)
				return w.updates(r.rollingBack(5), r.rollingBack(50))
			},
		},
		"Disarm": {
			reason:    "nor is calling it off",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(2, web)
				w.holds(rev(1, config), r)
				return w.updates(r.rollingBack(5), r)
			},
		},
		"ArmSucceeded": {
			reason:    "what has succeeded is not rolled back",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(2, web).successful()
				w.holds(rev(1, config), r)
				return w.updates(r, r.rollingBack(5))
			},
		},
		"Archive": {
			reason:    "what is in no other revision is deleted",
			situation: func(w *situation) { w.has(1, web) },
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.updates(r, r.as("Archived")) },
			code:      forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"ArchiveOld": {
			reason:    "what a newer one has stays: nothing happens to it",
			situation: func(w *situation) { w.has(2, web) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r, rev(2, web))
				return w.updates(r, r.as("Archived"))
			},
		},
		"ArchiveFallsBack": {
			reason:    "what the older one has otherwise is written again",
			situation: func(w *situation) { w.has(2, changed) },
			act: func(w *situation) error {
				r := rev(2, changed)
				w.holds(rev(1, config), r)
				return w.updates(r, r.as("Archived"))
			},
			code: forbidden, says: []string{"create,patch configmaps lighthouse/config", "!delete"},
		},
		"ArchiveFallsBackToTheSame": {
			reason:    "what it has alike is left as it is",
			situation: func(w *situation) { w.has(2, config) },
			act: func(w *situation) error {
				r := rev(2, config)
				w.holds(rev(1, config), r)
				return w.updates(r, r.as("Archived"))
			},
		},
		"ArchiveFallsBackToPower": {
			reason: "the older one granted more",
			situation: func(w *situation) {
				w.may("", rule("create,patch", "rbac.authorization.k8s.io", "clusterroles"))
			},
			act: func(w *situation) error {
				r := rev(2, clusterRole(t, "r", rule("get", "", "configmaps")))
				w.holds(rev(1, clusterRole(t, "r", rule("*", "*", "*"))), r)
				return w.updates(r, r.as("Archived"))
			},
			code: forbidden, says: []string{"* *.* (granted by ClusterRole r)"},
		},
		"Delete": {
			reason:    "deleting a revision takes its objects down",
			situation: func(w *situation) { w.has(1, web) },
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.deletes(r) },
			code:      forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"DeleteAllowed": {
			reason:    "who may",
			situation: func(w *situation) { w.may("lighthouse", all).has(1, web) },
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.deletes(r) },
		},
		"DeleteNotRolledOut": {
			reason:    "objects that are not there yet may be when it is carried out",
			situation: func(*situation) {},
			act:       func(w *situation) error { r := rev(1, web); w.holds(r); return w.deletes(r) },
			code:      forbidden,
		},
		"DeleteArchived": {
			reason:    "an archived one holds nothing any more",
			situation: func(w *situation) { w.has(2, web, config) },
			act: func(w *situation) error {
				r := rev(1, web, config).as("Archived")
				w.holds(r, rev(2, web))
				return w.deletes(r)
			},
		},
		"DeleteOrphan": {
			reason:    "leaving objects takes a patch of each",
			situation: func(w *situation) { w.has(1, web) },
			act:       func(w *situation) error { r := rev(1, web).orphaning(); w.holds(r); return w.deletes(r) },
			code:      forbidden, says: []string{"patch deployments.apps lighthouse/web", "!delete"},
		},
		"CascadeOrphan": {
			reason:    "also when the delete says so",
			situation: func(w *situation) { w.may("lighthouse", rule("patch", "apps", "deployments")).has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.plugin().Validate(request.WithOrphans(t.Context()), attributes(admission.Delete, nil, r, ""), nil)
			},
		},
		"DeleteAgain": {
			reason:    "it is being deleted already",
			situation: func(w *situation) { w.has(1, web) },
			act:       func(w *situation) error { r := rev(1, web).deleting(); w.holds(r); return w.deletes(r) },
		},
		"OrphanBecomesDelete": {
			reason:    "a delete that was to leave objects must not be turned into one that does not",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).deleting()
				w.holds(r)
				return w.updates(r.orphaning(), r)
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"DeleteBecomesOrphan": {
			reason:    "objects that were to go are let go of: that is a patch of each",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).deleting()
				w.holds(r)
				return w.updates(r, r.orphaning())
			},
			code: forbidden, says: []string{"patch deployments.apps lighthouse/web", "!delete"},
		},
		"DeleteAgainCascadeOrphan": {
			reason:    "a second delete can ask for it too",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).deleting()
				w.holds(r)
				return w.plugin().Validate(request.WithOrphans(t.Context()), attributes(admission.Delete, nil, r, ""), nil)
			},
			code: forbidden, says: []string{"patch deployments.apps lighthouse/web", "!delete"},
		},
		"OrphanWithoutFinalizer": {
			reason:    "what was to be let go of, and was not yet, is deleted as soon as it is in no revision",
			situation: func(w *situation) { w.may("lighthouse", rule("patch", "apps", "deployments")).has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).deleting().orphaning()
				w.holds(r)
				return w.updates(r, r.released())
			},
			code: forbidden, says: []string{"delete deployments.apps lighthouse/web"},
		},
		"DeleteWithoutFinalizer": {
			reason:    "who deleted it was asked about deleting its objects",
			situation: func(w *situation) { w.has(1, web) },
			act: func(w *situation) error {
				r := rev(1, web).deleting()
				w.holds(r)
				return w.updates(r, r.released())
			},
		},
		"Acknowledge": {
			reason:    "letting a definition go with its instances is deleting it",
			situation: func(*situation) {},
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.updates(r.acknowledging("a.example.com"), r.acknowledging("a.example.com, b.example.com"))
			},
			code: forbidden, says: []string{"delete customresourcedefinitions.apiextensions.k8s.io b.example.com", "!a.example.com"},
		},
		"TakesFromAnother": {
			reason: "the right to the objects, and to bypass the check of this extension, is none to bypass that of another",
			situation: func(w *situation) {
				w.may("lighthouse", all).may("", rule("bypass", "policy.penstock.dev", "privilegechecks", "lighthouse"))
			},
			act:  func(w *situation) error { return w.creates(rev(1, web).taking("keep, lighthouse")) },
			code: forbidden, says: []string{"bypass privilegechecks.policy.penstock.dev keep", "!lighthouse (for"},
		},
		"TakesFromAnotherLater": {
			reason:    "the annotation is set on what exists",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act: func(w *situation) error {
				r := rev(1, web)
				w.holds(r)
				return w.updates(r, r.taking("keep"))
			},
			code: forbidden, says: []string{"bypass privilegechecks.policy.penstock.dev keep"},
		},
		"TakesFromAnotherAllowed": {
			reason: "the right for that extension, and to the objects",
			situation: func(w *situation) {
				w.may("lighthouse", all).may("", rule("bypass", "policy.penstock.dev", "privilegechecks", "keep"))
			},
			act: func(w *situation) error { return w.creates(rev(1, web).taking("keep")) },
		},
		"TakesFromAnotherStill": {
			reason:    "nobody is asked about what somebody else was asked about",
			situation: func(w *situation) {},
			act: func(w *situation) error {
				r := rev(1, web).taking("keep")
				w.holds(r)
				return w.updates(r, r.taking("keep"))
			},
		},
		"OtherChain": {
			reason:    "the objects of another chain are not this one's",
			situation: func(w *situation) { w.may("lighthouse", all) },
			act: func(w *situation) error {
				other := rev(1, object(t, "v1", "Namespace", "", "n", nil))
				other.Name = "other-1"
				w.holds(other)
				return w.creates(rev(1, web))
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			tc.situation(w)
			want(t, tc.reason, tc.act(w), tc.code, tc.says...)
		})
	}
}
