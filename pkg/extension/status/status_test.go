package status

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extension"
)

func TestOf(t *testing.T) {
	const progressing, nothing = "True/Succeeded: Desired state reached", "False/NotStalled: nothing waits for a person"
	objects := "phase deploy (2 of 2, 1 of 3 objects available): Deployment argocd/server (ProbeFailed): 0 of 1 replicas available; 1 more object"
	for name, tc := range map[string]struct {
		reason string
		facts  Facts
		want   map[string]string
		active string
		bundle string
	}{
		"New": {
			reason: "nothing is known yet: that is no failure", facts: facts(outcome(Pending, "waiting for the catalogs to be read", "")),
			want: map[string]string{
				Installed: "False/Absent: No bundle installed", Progressing: "True/Retrying: waiting for the catalogs to be read", Available: "False/Absent: No bundle installed",
				Ready: "False/Pending: waiting for the catalogs to be read", Stalled: nothing, BundleDeprecated: "Unknown/Absent: no bundle installed yet", UpgradeAvailable: "Unknown/Absent: no bundle installed yet",
			},
		},
		"Installed": {
			reason: "all is well", facts: facts(with(rev(1, well))), active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			want: map[string]string{
				Installed: "True/Succeeded: Installed bundle quay.io/argocd@sha256:1 successfully", Progressing: progressing, Available: "True/ProbesSucceeded: Objects are available and pass all probes.",
				Ready: "True/Succeeded: argocd-1 (1.0.0) is installed and available", Stalled: nothing, UpgradeAvailable: "False/NewestInstalled: 1.0.0 is the newest version",
				Deprecated: "False/NotDeprecated: not deprecated", PackageDeprecated: "False/NotDeprecated: package not deprecated",
				ChannelDeprecated: "False/NotDeprecated: channel not deprecated", BundleDeprecated: "False/NotDeprecated: bundle not deprecated",
			},
		},
		"FirstRollout": {
			reason: "a healthy first rollout is Absent and not Failed, and the objects are named", facts: facts(with(rev(1, rolling, failing("ProbeFailed", "")))),
			active: "argocd-1[Available=False/ProbeFailure Progressing=True/RollingOut]",
			want: map[string]string{
				Installed: "False/Absent: No bundle installed", Progressing: "True/RollingOut: Revision 1.0.0 is rolling out.",
				Available: "False/ProbeFailure: Object Deployment.apps/v1 argocd/server: 0 of 1 replicas available",
				Ready:     "False/RollingOut: argocd-1 (1.0.0) is rolling out: " + objects, Stalled: nothing,
			},
		},
		"Unseen": {
			reason: "a revision without a status rolls out", facts: facts(with(rev(1))), active: "argocd-1[Available=False/RollingOut Progressing=True/RollingOut]",
			want: map[string]string{
				Installed: "False/Absent: No bundle installed", Progressing: "True/RollingOut: Revision 1.0.0 is rolling out.",
				Available: "False/RollingOut: Revision 1.0.0 is rolling out.", Ready: "False/RollingOut: argocd-1 (1.0.0) is rolling out",
			},
		},
		"Collision": {
			reason: "what OLM calls an error is Retrying, and Installed is Failed", facts: facts(with(rev(1, rolling[:3], "Failing=True/Collision: Deployment argocd/server: exists", "Stalled=True/Collision: exists", failing("Collision", "")))),
			active: "argocd-1[Available=Unknown/Reconciling Progressing=True/Retrying]",
			want: map[string]string{
				Installed:   "False/Failed: No bundle installed",
				Progressing: "True/Retrying: revision object collisions in phase 1\nDeployment argocd/server: 0 of 1 replicas available",
				Ready:       "False/Collision: argocd-1 (1.0.0): " + strings.ReplaceAll(objects, "ProbeFailed", "Collision"),
				Stalled:     "True/Collision: argocd-1 (1.0.0): " + strings.ReplaceAll(objects, "ProbeFailed", "Collision"),
			},
		},
		"NamespaceMissing": {
			reason: "it is tried again, and not stalled", facts: facts(with(rev(1, rolling, failing("ApplyRejected", "")))),
			active: "argocd-1[Available=Unknown/Reconciling Progressing=True/Retrying]",
			want:   map[string]string{Installed: "False/Failed: No bundle installed", Progressing: "True/Retrying: Deployment argocd/server: 0 of 1 replicas available", Stalled: nothing},
		},
		"StuckUpgrade": {
			reason: "both are told: what is installed, and what is stuck", facts: facts(generation(2), with(rev(1, well), rev(2, rolling, failing("ProbeFailed", "ImagePullBackOff")))),
			active: "argocd-1 argocd-2[Available=False/ProbeFailure Progressing=True/RollingOut]", bundle: "argocd.v1.0.0 1.0.0",
			want: map[string]string{
				Installed: "True/Succeeded: Installed bundle quay.io/argocd@sha256:1 successfully", Progressing: "True/RollingOut: Revision 1.1.0 is rolling out.",
				Available: "True/ProbesSucceeded: Objects are available and pass all probes.",
				Ready:     "False/RollingOut: argocd-2 (1.1.0) is rolling out: " + strings.ReplaceAll(objects, "ProbeFailed", "ProbeFailed, ImagePullBackOff"),
			},
		},
		"Deadline": {
			reason: "OLM's message, and a person has to act", active: "argocd-1[Available=False/ProbeFailure Progressing=False/ProgressDeadlineExceeded]",
			facts: facts(with(rev(1, rolling[:3], "Failing=False/NoFailure: no", "Stalled=True/ProgressDeadlineExceeded: the rollout takes longer than 10 minutes; phase deploy", failing("ProbeFailed", ""),
				edit(func(r *olmv1alpha1.ClusterExtensionRevision) { r.Spec.ProgressDeadlineMinutes = 10 })))),
			want: map[string]string{
				Installed:   "False/Absent: No bundle installed",
				Progressing: "False/ProgressDeadlineExceeded: Revision has not rolled out for 10 minute(s). Last status: Revision 1.0.0 is rolling out.",
				Ready:       "False/ProgressDeadlineExceeded: argocd-1 (1.0.0): the rollout takes longer than 10 minutes; " + objects,
				Stalled:     "True/ProgressDeadlineExceeded: argocd-1 (1.0.0): the rollout takes longer than 10 minutes; " + objects,
			},
		},
		"Corrected": {
			reason: "the newest of several that roll out counts", facts: facts(generation(3), with(rev(1, well), rev(2, rolling, failing("ProbeFailed", "")), rev(3, rolling))), bundle: "argocd.v1.0.0 1.0.0",
			active: "argocd-1 argocd-2[Available=False/ProbeFailure Progressing=True/RollingOut] argocd-3[Available=False/RollingOut Progressing=True/RollingOut]",
			want:   map[string]string{Progressing: "True/RollingOut: Revision 1.2.0 is rolling out."},
		},
		"WorkloadNotReady": {
			reason: "what was installed fails its probes", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(with(rev(1, "Available=False/Unavailable: x", "Progressing=False/RolledOut: done", "Succeeded=True/RolledOut: once", failing("ProbeFailed", "CrashLoopBackOff")))),
			want: map[string]string{
				Available: "False/ProbeFailure: Object Deployment.apps/v1 argocd/server: 0 of 1 replicas available", Progressing: progressing,
				Ready: "False/Unavailable: argocd-1 (1.0.0) is installed, and not available: " + strings.ReplaceAll(objects, "ProbeFailed", "ProbeFailed, CrashLoopBackOff"),
			},
		},
		"Contested": {
			reason: "somebody changes an object back", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(with(rev(1, "Available=False/Contested: x", "Progressing=True/Repairing: x", "Succeeded=True/RolledOut: once", "Failing=True/Contested: x", failing("Contested", "")))),
			want:  map[string]string{Ready: "False/Contested: argocd-1 (1.0.0): " + strings.ReplaceAll(objects, "ProbeFailed", "Contested"), Available: "Unknown/Reconciling: Deployment argocd/server: 0 of 1 replicas available"},
		},
		"Frozen": {
			reason: "nothing is written", facts: facts(with(rev(1, rolling[0], "Progressing=False/Frozen: frozen by alice; nothing is written", rolling[2]))),
			active: "argocd-1[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{
				Progressing: "False/Blocked: frozen by alice; nothing is written", Ready: "False/Frozen: argocd-1 (1.0.0): frozen by alice; nothing is written",
			},
		},
		"Paused": {
			reason: "a person has paused it", facts: facts(with(rev(1, rolling[2], lifecycle(olmv1alpha1.LifecycleStatePaused)))), active: "argocd-1[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{Progressing: "False/Blocked: Revision 1.0.0 is paused.", Ready: "False/Paused: argocd-1 (1.0.0) is paused; resume it with: kubectl penstock resume argocd-1"},
		},
		"Unresolved": {
			reason: "OLM's message to the letter, ours in Ready", bundle: "argocd.v1.0.0 1.0.0", active: "argocd-1",
			facts: facts(generation(2), with(rev(1, well)), outcome(Unresolved, `error upgrading from currently installed version "1.0.0": no bundles found for package "argocd" matching version "1.2.0"`, "go to 1.1.0 first")),
			want: map[string]string{
				Progressing: `True/Retrying: error upgrading from currently installed version "1.0.0": no bundles found for package "argocd" matching version "1.2.0"`,
				Ready:       `False/Unresolved: error upgrading from currently installed version "1.0.0": no bundles found for package "argocd" matching version "1.2.0": go to 1.1.0 first`,
				Stalled:     `True/Unresolved: error upgrading from currently installed version "1.0.0": no bundles found for package "argocd" matching version "1.2.0": go to 1.1.0 first`,
				Installed:   "True/Succeeded: Installed bundle quay.io/argocd@sha256:1 successfully",
			},
		},
		"InvalidConfiguration": {
			reason: "the resolved bundle is named as OLM does", facts: facts(outcome(InvalidConfiguration, `invalid ClusterExtension configuration: invalid configuration: required field "watchNamespace" is missing`, "")),
			want: map[string]string{
				Installed:   "False/Failed: No bundle installed",
				Progressing: `False/InvalidConfiguration: error for resolved bundle "argocd.v1.1.0" with version "1.1.0": invalid ClusterExtension configuration: invalid configuration: required field "watchNamespace" is missing`,
			},
		},
		"Denied": {
			reason: "the rights that are missing are told, with the way out", facts: facts(outcome(Denied, `bob cannot create ClusterRole argocd: missing get on secrets`, "grant it: kubectl create clusterrole x")),
			want: map[string]string{
				Progressing: `False/Blocked: error for resolved bundle "argocd.v1.1.0" with version "1.1.0": bob cannot create ClusterRole argocd: missing get on secrets`,
				Ready:       "False/Denied: bob cannot create ClusterRole argocd: missing get on secrets: grant it: kubectl create clusterrole x",
				Stalled:     "True/Denied: bob cannot create ClusterRole argocd: missing get on secrets: grant it: kubectl create clusterrole x",
			},
		},
		"UpgradeNotAllowed": {
			reason: "what the spec led to is installed: an upgrade that a catalog brought and nobody may make is no failure of it", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(with(rev(1, well)), outcome(Denied, "alice cannot create roles", ""), upgrades(&Upgrades{Allowed: "1.1.0"})),
			want: map[string]string{
				Ready: "True/Succeeded: argocd-1 (1.0.0) is installed and available; no other version can be installed (Denied): alice cannot create roles", Stalled: nothing,
				UpgradeAvailable: "True/Denied: 1.1.0 is newer than 1.0.0, and allowed; it is not installed: alice cannot create roles",
			},
		},
		"WaitsForWindow": {
			reason: "an upgrade that waits is no failure of what is installed, also where it is no newer version", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(with(rev(1, well)), outcome(WaitingForWindow, "MaintenanceWindow nights is closed", ""), upgrades(&Upgrades{Newest: "1.0.0"})),
			want: map[string]string{
				Progressing: progressing, Ready: "True/Succeeded: argocd-1 (1.0.0) is installed and available; an upgrade to 1.1.0 waits: MaintenanceWindow nights is closed", Stalled: nothing,
				UpgradeAvailable: "True/WaitingForWindow: an upgrade to 1.1.0 waits: MaintenanceWindow nights is closed",
			},
		},
		"NotUpgradeable": {
			reason: "an upgrade that the installed operator holds is no failure of what is installed", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(with(rev(1, well)), outcome(NotUpgradeable, "OperatorCondition a/b: Upgradeable=False", ""), upgrades(&Upgrades{Newest: "1.1.0", Allowed: "1.1.0"})),
			want: map[string]string{
				Progressing: progressing, Ready: "True/Succeeded: argocd-1 (1.0.0) is installed and available; an upgrade to 1.1.0 waits: OperatorCondition a/b: Upgradeable=False", Stalled: nothing,
				UpgradeAvailable: "True/NotUpgradeable: an upgrade to 1.1.0 waits: OperatorCondition a/b: Upgradeable=False",
			},
		},
		"CatalogGone": {
			reason: "what is installed is kept, and OLM says that all is well", facts: facts(with(rev(1, well)), outcome(NoCatalog, `no bundles found for package "argocd"`, ""), func(f *Facts) { f.Deprecations, f.Upgrades = nil, nil }), active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			want: map[string]string{
				Progressing: progressing, Ready: `True/Succeeded: argocd-1 (1.0.0) is installed and available; no other version can be installed (NoCatalog): no bundles found for package "argocd"`,
				Deprecated: "Unknown/DeprecationStatusUnknown: deprecation status unknown: catalog data unavailable", BundleDeprecated: "Unknown/DeprecationStatusUnknown: deprecation status unknown: catalog data unavailable",
				UpgradeAvailable: "Unknown/CatalogDataUnavailable: no catalog says which versions there are",
			},
		},
		"CatalogGoneAndSpecChanged": {
			reason: "OLM says that all is well; Ready says that the change has not come about", facts: facts(generation(2), with(rev(1, well)), outcome(NoCatalog, "no catalog", "")), active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			want: map[string]string{Progressing: progressing, Ready: "False/NoCatalog: no catalog"},
		},
		"CatalogGoneAndVersionWanted": {
			reason: "another version needs a catalog", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(generation(2), with(rev(1, well)), outcome(NoCatalog, "no catalog", ""), func(f *Facts) { f.Extension.Spec.Source.Catalog.Version = "1.2.0" }),
			want:  map[string]string{Progressing: "True/Retrying: no catalog", Ready: "False/NoCatalog: no catalog"},
		},
		"ProposedInstallation": {
			reason: "it waits for a person as was asked for, so it is not stalled", facts: facts(with(rev(1, proposedFor("1")))), active: "argocd-1[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{
				Installed: "False/Absent: No bundle installed", Progressing: "False/Blocked: Revision 1.0.0 is proposed and waits for approval.", Stalled: nothing,
				Ready: "False/Proposed: argocd-1 (1.0.0), from channel stable is proposed as an installation and waits for approval; review and approve it with: kubectl penstock upgrade argocd",
			},
		},
		"ProposedByCatalog": {
			reason: "what the spec asks for is there, and a newer version may come", facts: facts(with(rev(1, well), rev(2, proposedFor("1")))), bundle: "argocd.v1.0.0 1.0.0",
			active: "argocd-1 argocd-2[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{
				Progressing:      progressing,
				Ready:            "True/Succeeded: argocd-1 (1.0.0) is installed and available; argocd-2 (1.1.0), from channel stable is proposed as an upgrade and waits for approval; review and approve it with: kubectl penstock upgrade argocd",
				UpgradeAvailable: "True/Proposed: argocd-2 (1.1.0), from channel stable is proposed as an upgrade and waits for approval; review and approve it with: kubectl penstock upgrade argocd",
			},
		},
		"Warned": {
			reason: "what rendering warned of is read where the result is", facts: facts(with(rev(1, well, annotated(extension.WarningsAnnotation, "a.yaml:1: one\nb.yaml: two")))), bundle: "argocd.v1.0.0 1.0.0", active: "argocd-1",
			want: map[string]string{Ready: "True/Succeeded: argocd-1 (1.0.0) is installed and available; its content has warnings: a.yaml:1: one; b.yaml: two"},
		},
		"ProposedWarned": {
			reason: "a reviewer knows them", facts: facts(with(rev(1, proposedFor("1"), annotated(extension.WarningsAnnotation, "a.yaml:1: one")))), active: "argocd-1[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{
				Ready: "False/Proposed: argocd-1 (1.0.0), from channel stable is proposed as an installation and waits for approval; its content has warnings: a.yaml:1: one; review and approve it with: kubectl penstock upgrade argocd",
			},
		},
		"ProposedBySpec": {
			reason: "what the spec asks for is not there", facts: facts(generation(2), with(rev(1, well), rev(2, proposedFor("2")))), bundle: "argocd.v1.0.0 1.0.0", active: "argocd-1 argocd-2[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{Progressing: "False/Blocked: Revision 1.1.0 is proposed and waits for approval."},
		},
		"ProposedWhy": {
			reason: "nobody has decided it, and the reason is told", facts: facts(with(rev(1, proposedFor("1"), annotated(olmv1alpha1.LifecycleReasonAnnotation, "alice cannot")))), active: "argocd-1[Available=False/RollingOut Progressing=False/Blocked]",
			want: map[string]string{
				Ready: "False/Proposed: argocd-1 (1.0.0), from channel stable is proposed as an installation and waits for approval: alice cannot; review and approve it with: kubectl penstock upgrade argocd",
			},
		},
		"ApprovedForLater": {
			reason: "nobody has to do anything", bundle: "argocd.v1.0.0 1.0.0", active: "argocd-1 argocd-2[Available=False/RollingOut Progressing=False/Blocked]",
			facts: facts(with(rev(1, well), rev(2, proposedFor("1"), annotated(olmv1alpha1.ScheduledApprovalAnnotation, `{"user":"alice","notBefore":"2026-11-28T21:00:00Z"}`))), func(f *Facts) { f.Outcome.Later = "MaintenanceWindow nights is closed" }),
			want: map[string]string{
				Ready:            "True/Succeeded: argocd-1 (1.0.0) is installed and available; argocd-2 (1.1.0), from channel stable is approved by alice and begins when a maintenance window lets it, not before 2026-11-28T21:00:00Z: MaintenanceWindow nights is closed",
				UpgradeAvailable: "True/WaitingForWindow: argocd-2 (1.1.0), from channel stable is approved by alice and begins when a maintenance window lets it, not before 2026-11-28T21:00:00Z: MaintenanceWindow nights is closed",
			},
		},
		"ApprovalEnded": {
			reason: "it waits again, and that is said", bundle: "argocd.v1.0.0 1.0.0", active: "argocd-1 argocd-2[Available=False/RollingOut Progressing=False/Blocked]",
			facts: facts(with(rev(1, well), rev(2, proposedFor("1"), annotated(olmv1alpha1.ScheduledApprovalAnnotation, `{"user":"alice","notBefore":"2026-11-28T21:00:00Z","ended":"2026-11-28T21:00:01Z","why":"alice cannot"}`)))),
			want: map[string]string{
				UpgradeAvailable: "True/Proposed: argocd-2 (1.1.0), from channel stable is proposed as an upgrade and waits for approval again: the approval by alice had no effect: alice cannot; review and approve it with: kubectl penstock upgrade argocd",
			},
		},
		"InstallationApprovedForLater": {
			reason: "an installation can wait, too", active: "argocd-1[Available=False/RollingOut Progressing=False/Blocked]",
			facts: facts(with(rev(1, proposedFor("1"), annotated(olmv1alpha1.ScheduledApprovalAnnotation, `{"user":"alice","notBefore":"2026-11-28T21:00:00Z"}`)))),
			want:  map[string]string{Ready: "False/WaitingForWindow: argocd-1 (1.0.0), from channel stable is approved by alice and begins when a maintenance window lets it, not before 2026-11-28T21:00:00Z", Stalled: nothing},
		},
		"Held": {
			reason: "a rollback stays until a person acts", active: "argocd-3", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(generation(2), with(rev(2, rolling, lifecycle(olmv1alpha1.LifecycleStateArchived)), rev(3, well, "Held=True/IsRollback: argocd-3 is a rollback: it is released", annotated(olmv1alpha1.VersionAnnotation, "1.0.0"), annotated(olmv1alpha1.BundleAnnotation, "argocd.v1.0.0")))),
			want: map[string]string{
				Progressing: "False/Blocked: argocd-3 is a rollback: it is released", Ready: "False/Held: argocd-3 is a rollback: it is released", Stalled: "True/Held: argocd-3 is a rollback: it is released",
			},
		},
		"Blocked": {
			reason: "newer versions are told, and why they do not come", facts: facts(with(rev(1, well)), upgrades(&Upgrades{Newest: "2.0.0", Blocked: []BlockedVersion{{"2.0.0", "it does not succeed 1.0.0"}, {"1.9.0", "a"}, {"1.8.0", "b"}, {"1.7.0", "c"}}})),
			active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			want: map[string]string{UpgradeAvailable: "True/Blocked: 2.0.0 is newer, and blocked: it does not succeed 1.0.0; 1.9.0 is newer, and blocked: a; 1.8.0 is newer, and blocked: b; 1 more are blocked"},
		},
		"Deprecated": {
			reason: "as OLM joins them; entries without a message are not told", active: "argocd-1", bundle: "argocd.v1.0.0 1.0.0",
			facts: facts(with(rev(1, well)), func(f *Facts) {
				f.Deprecations = &Deprecations{Package: []string{"the package goes"}, Channels: []string{"old channel", "older channel"}, Installed: []string{""}}
			}),
			want: map[string]string{
				Deprecated: "True/Deprecated: the package goes\nold channel\nolder channel", PackageDeprecated: "True/Deprecated: the package goes",
				ChannelDeprecated: "True/Deprecated: old channel\nolder channel", BundleDeprecated: "False/NotDeprecated: bundle not deprecated",
			},
		},
		"RevisionsUnknown": {
			reason: "OLM's message", facts: facts(func(f *Facts) { f.RevisionsErr = errors.New("the store does not answer") }),
			want: map[string]string{
				Installed: "Unknown/Failed: the store does not answer", Progressing: "True/Retrying: retrying to get installed bundle", Ready: "Unknown/RevisionsUnknown: the revisions of this extension cannot be read: the store does not answer",
			},
		},
		"Deleting": {
			reason: "what keeps it is told", active: "", facts: facts(func(f *Facts) { f.Extension.DeletionTimestamp = &metav1.Time{Time: start} }, with(rev(1, well, failing("Terminating", ""), edit(func(r *olmv1alpha1.ClusterExtensionRevision) { r.DeletionTimestamp = &metav1.Time{Time: start} })))),
			want: map[string]string{Ready: "False/Deleting: the extension is being deleted; 1 revision with objects are left: " + strings.ReplaceAll(objects, "ProbeFailed", "Terminating"), Stalled: nothing, Installed: "False/Absent: No bundle installed"},
		},
		"NoVersion": {
			reason: "the definition takes no bundle without a version", facts: facts(with(rev(1, well, annotated(olmv1alpha1.VersionAnnotation, "latest")))), active: "argocd-1",
			want: map[string]string{Installed: "True/Succeeded: Installed bundle quay.io/argocd@sha256:1 successfully"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of(tc.facts)
			for kind, want := range tc.want {
				if diff := cmp.Diff(want, line(got.Conditions, kind)); diff != "" {
					t.Errorf("%s: %s (-want +got)\n%s", tc.reason, kind, diff)
				}
			}
			if tc.facts.RevisionsErr == nil && len(got.Conditions) != 10 {
				t.Errorf("it has %d conditions, want 10: always the same ones", len(got.Conditions))
			}
			if diff := cmp.Diff(tc.active, actives(got.ActiveRevisions)); diff != "" {
				t.Errorf("%s: activeRevisions (-want +got)\n%s", tc.reason, diff)
			}
			bundle := ""
			if got.Install != nil {
				bundle = got.Install.Bundle.Name + " " + got.Install.Bundle.Version
			}
			if bundle != tc.bundle {
				t.Errorf("%s: the installed bundle is %q, want %q", tc.reason, bundle, tc.bundle)
			}
			tc.facts.Extension.Status, tc.facts.Now = got, start.Add(time.Hour)
			if again := Of(tc.facts); !Same(got, again) {
				t.Errorf("nothing has changed, and the status is another one (-before +after)\n%s", cmp.Diff(got, again))
			}
		})
	}
}

func actives(revisions []extension.ActiveRevision) string {
	var out []string
	for _, one := range revisions {
		text := one.Name
		var conditions []string
		for _, c := range one.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		if len(conditions) > 0 {
			text += "[" + strings.Join(conditions, " ") + "]"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestTransitions: the transition time changes only with the status, and conditions of other
// writers stay.
func TestTransitions(t *testing.T) {
	f := facts(with(rev(1, rolling)))
	f.Extension.Status.Conditions = []metav1.Condition{{Type: "Audited", Status: metav1.ConditionTrue, Reason: "Yes"}}
	first := Of(f)
	f.Extension.Status, f.Revisions[0], f.Now = first, rev(1, well), start.Add(1500*time.Millisecond)
	second := Of(f)
	for kind, want := range map[string]time.Duration{Ready: time.Second, Installed: time.Second, Progressing: 0, Stalled: 0} {
		if got := meta.FindStatusCondition(second.Conditions, kind).LastTransitionTime.Sub(start); got != want {
			t.Errorf("%s became another one %s after the start, want %s", kind, got, want)
		}
	}
	if line(second.Conditions, "Audited") != "True/Yes: " {
		t.Error("the condition of somebody else is gone")
	}
	if line(first.Conditions, Ready) == line(second.Conditions, Ready) {
		t.Error("the first status was changed")
	}
}

// TestSettledAgain: equal content creates no revision. An extension that settled at this generation
// stays ready while the catalogs are unavailable.
func TestSettledAgain(t *testing.T) {
	f := facts(generation(2), with(rev(1, well)))
	f.Extension.Status = Of(f)
	f.Outcome = Outcome{Result: CatalogUnavailable, Message: "error getting package"}
	got := Of(f)
	if want := "True/Succeeded: argocd-1 (1.0.0) is installed and available; no other version can be installed (CatalogUnavailable): error getting package"; line(got.Conditions, Ready) != want {
		t.Errorf("Ready is %q, want %q", line(got.Conditions, Ready), want)
	}
	if want := "True/Retrying: error getting package"; line(got.Conditions, Progressing) != want {
		t.Errorf("Progressing is %q, want %q", line(got.Conditions, Progressing), want)
	}
}

// TestSize: the status fits into etcd even with the longest texts of other writers.
func TestSize(t *testing.T) {
	long := strings.Repeat("é", 40000)
	f := facts(generation(2), outcome(Unresolved, long, long), func(f *Facts) {
		f.Deprecations = &Deprecations{Package: []string{long}, Channels: []string{long}, Installed: []string{long}}
		f.Upgrades = &Upgrades{Allowed: "2.0.0", Blocked: []BlockedVersion{{"3.0.0", long}}}
	})
	for n := int64(1); n <= 40; n++ {
		f.Revisions = append([]*olmv1alpha1.ClusterExtensionRevision{rev(n, "Failing=True/Invalid: "+long)}, f.Revisions...)
	}
	total := 0
	got := Of(f)
	conditions := got.Conditions
	for _, one := range got.ActiveRevisions {
		conditions = append(conditions, one.Conditions...)
	}
	for _, condition := range conditions {
		total += len(condition.Message)
		if len(condition.Message) > longestMessage {
			t.Errorf("%s has %d bytes", condition.Type, len(condition.Message))
		}
	}
	if total > 128<<10 {
		t.Errorf("the messages have %d bytes", total)
	}
	if len(got.ActiveRevisions) != maxRevisions {
		t.Errorf("%d revisions are told, want %d", len(got.ActiveRevisions), maxRevisions)
	}
}

// TestResults: every result except the first two has the message of OLM.
func TestResults(t *testing.T) {
	reasons := map[string]bool{ReasonRetrying: true, ReasonBlocked: true, ReasonInvalidConfiguration: true, ReasonRollingOut: true}
	for result, verdict := range verdicts() {
		if !reasons[verdict.reason] || verdict.progressing == "" {
			t.Errorf("%s is %s/%s", result, verdict.progressing, verdict.reason)
		}
		if verdict.reason == ReasonBlocked != (verdict.progressing == metav1.ConditionFalse && result != InvalidConfiguration) {
			t.Errorf("%s: Blocked is False", result)
		}
	}
}

// TestPending: after a revision is created, the status stays unchanged until the watch reports the
// revision.
func TestPending(t *testing.T) {
	for name, f := range map[string]Facts{
		"New":     facts(generation(1), func(f *Facts) { f.Outcome = Outcome{Result: Pending} }),
		"Changed": facts(generation(2), with(rev(1, well)), func(f *Facts) { f.Extension.Status = Of(*f); f.Outcome = Outcome{} }),
	} {
		before := f.Extension.Status
		f.Extension.Generation++
		if got := Of(f); !Same(before, got) {
			t.Errorf("%s: the status has changed (-before +after)\n%s", name, cmp.Diff(before, got))
		}
	}
}
