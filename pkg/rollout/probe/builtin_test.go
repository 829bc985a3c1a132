package probe

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

type builtinCase struct {
	reason string
	object string
	want   Verdict
}

func run(t *testing.T, kind schema.GroupKind, cases map[string]builtinCase) {
	t.Helper()
	p := Builtin().For(kind)
	if p == nil {
		t.Fatalf("%s has no probe", kind)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, tc.reason, p, live(t, tc.object), tc.want)
		})
	}
}

func TestDeployment(t *testing.T) {
	run(t, of("apps", "Deployment"), map[string]builtinCase{
		"Complete": {
			reason: "all replicas updated and available, none left over",
			object: `{metadata: {generation: 2}, spec: {replicas: 3, template: {}}, status: {observedGeneration: 2,
				replicas: 3, updatedReplicas: 3, readyReplicas: 3, availableReplicas: 3}}`,
			want: Verdict{Status: True},
		},
		"ScaledToZero": {
			reason: "nothing wanted, nothing there: the counts are absent then",
			object: `{metadata: {generation: 1}, spec: {replicas: 0}, status: {observedGeneration: 1}}`,
			want:   Verdict{Status: True},
		},
		"StaleStatus": {
			reason: "counts of the previous template must not pass",
			object: `{metadata: {generation: 3}, spec: {replicas: 1}, status: {observedGeneration: 2,
				replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`,
			want: Verdict{Unknown, "its controller has not seen generation 3 yet (its status is of generation 2)"},
		},
		"NoStatus": {
			reason: "just created",
			object: `{metadata: {generation: 1}, spec: {replicas: 0}}`,
			want:   Verdict{Unknown, "its controller has not reported a status yet"},
		},
		"DefaultReplicas": {
			reason: "absent replicas mean 1",
			object: `{metadata: {generation: 1}, spec: {}, status: {observedGeneration: 1}}`,
			want:   Verdict{False, "0 of 1 replica updated, 0 of 1 replica available"},
		},
		"OldReplicas": {
			reason: "kubectl rollout status waits for them to go, too",
			object: `{metadata: {generation: 2}, spec: {replicas: 2}, status: {observedGeneration: 2,
				replicas: 3, updatedReplicas: 2, availableReplicas: 3}}`,
			want: Verdict{False, "1 old replica not yet gone"},
		},
		"SurplusReplicas": {
			reason: "scaling down is not done while replicas are too many",
			object: `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2,
				replicas: 3, updatedReplicas: 3, availableReplicas: 3}}`,
			want: Verdict{False, "2 surplus replicas not yet gone"},
		},
		"DeadlineExceeded": {
			reason: "the reason is in the first line, with the controller's words",
			object: `{metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2,
				replicas: 3, updatedReplicas: 3, availableReplicas: 2, conditions: [
				{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: 'ReplicaSet "web-1" has timed out progressing.'},
				{type: Available, status: "True", reason: MinimumReplicasAvailable, message: ok}]}}`,
			want: Verdict{False, `2 of 3 replicas available; ProgressDeadlineExceeded: ReplicaSet "web-1" has timed out progressing.`},
		},
		"ReplicaFailure": {
			reason: "a quota or an admission webhook that refuses pods",
			object: `{metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [
				{type: ReplicaFailure, status: "True", reason: FailedCreate, message: "pods \"web-\" is forbidden:\n exceeded quota"},
				{type: Progressing, status: "True", reason: NewReplicaSetCreated, message: created}]}}`,
			want: Verdict{False, `0 of 1 replica updated, 0 of 1 replica available; FailedCreate: pods "web-" is forbidden: exceeded quota`},
		},
		"Paused": {
			reason: "nothing will move until someone resumes it, so say so",
			object: `{metadata: {generation: 2}, spec: {replicas: 1, paused: true}, status: {observedGeneration: 2, replicas: 1, availableReplicas: 1}}`,
			want:   Verdict{False, "0 of 1 replica updated, 1 old replica not yet gone; the rollout is paused (spec.paused)"},
		},
		"Deleting": {
			reason: "what is on its way out is not ready",
			object: `{metadata: {generation: 1, deletionTimestamp: "2026-11-21T10:00:00Z", finalizers: [foregroundDeletion]},
				spec: {replicas: 0}, status: {observedGeneration: 1}}`,
			want: Verdict{False, "is being deleted, waiting for finalizers foregroundDeletion"},
		},
		"WrongType": {
			reason: "the field is named",
			object: `{metadata: {generation: 1}, spec: {replicas: "three"}, status: {observedGeneration: 1}}`,
			want:   Verdict{Unknown, "spec.replicas is text, not a whole number"},
		},
		"StatusIsText": {
			reason: "the part that is wrong is named, not the leaf",
			object: `{metadata: {generation: 1}, spec: {}, status: broken}`,
			want:   Verdict{Unknown, "status is text, not an object"},
		},
	})
}

func TestStatefulSet(t *testing.T) {
	run(t, of("apps", "StatefulSet"), map[string]builtinCase{
		"Complete": {
			reason: "all replicas updated and available",
			object: `{metadata: {generation: 1}, spec: {replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}},
				status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			want: Verdict{Status: True},
		},
		"Partitioned": {
			reason: "replicas below the partition stay as they are",
			object: `{metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}},
				status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3}}`,
			want: Verdict{Status: True},
		},
		"PartitionedNotYet": {
			reason: "those above it are waited for",
			object: `{metadata: {generation: 2}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 1}}},
				status: {observedGeneration: 2, replicas: 3, updatedReplicas: 1, availableReplicas: 3}}`,
			want: Verdict{False, "1 of 2 replicas updated"},
		},
		"PartitionBeyondReplicas": {
			reason: "no replica is to be updated",
			object: `{metadata: {generation: 2}, spec: {replicas: 1, updateStrategy: {rollingUpdate: {partition: 9}}},
				status: {observedGeneration: 2, replicas: 1, availableReplicas: 1}}`,
			want: Verdict{Status: True},
		},
		"OnDelete": {
			reason: "pods are replaced by hand only; waiting for that would be for ever",
			object: `{metadata: {generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}},
				status: {observedGeneration: 2, replicas: 2, availableReplicas: 2}}`,
			want: Verdict{Status: True},
		},
		"Starting": {
			reason: "ordered start, one by one",
			object: `{metadata: {generation: 1}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate}},
				status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1}}`,
			want: Verdict{False, "1 of 3 replicas updated, 0 of 3 replicas available"},
		},
		"ScalingDown": {
			reason: "too many are not done",
			object: `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, availableReplicas: 2}}`,
			want:   Verdict{False, "1 surplus replica not yet gone"},
		},
		"Stale": {
			reason: "never observed",
			object: `{metadata: {generation: 1}, spec: {replicas: 0}, status: {replicas: 0}}`,
			want:   Verdict{Unknown, "its controller has not reported a status yet"},
		},
	})
}

func TestDaemonSet(t *testing.T) {
	run(t, of("apps", "DaemonSet"), map[string]builtinCase{
		"Complete": {
			reason: "on every node",
			object: `{metadata: {generation: 1}, spec: {updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 1,
				desiredNumberScheduled: 2, currentNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 2, numberAvailable: 2}}`,
			want: Verdict{Status: True},
		},
		"NoNodes": {
			reason: "a node selector that matches nothing is not an error",
			object: `{metadata: {generation: 1}, status: {observedGeneration: 1, desiredNumberScheduled: 0, numberReady: 0}}`,
			want:   Verdict{Status: True},
		},
		"Rolling": {
			reason: "one node at a time",
			object: `{metadata: {generation: 2}, status: {observedGeneration: 2, desiredNumberScheduled: 5, updatedNumberScheduled: 3, numberAvailable: 4}}`,
			want:   Verdict{False, "3 of 5 pods updated, 4 of 5 pods available"},
		},
		"OnDelete": {
			reason: "old pods are meant to stay",
			object: `{metadata: {generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, desiredNumberScheduled: 1, numberAvailable: 1}}`,
			want:   Verdict{Status: True},
		},
		"Stale": {
			reason: "no node counted yet is not the same as no node wanted",
			object: `{metadata: {generation: 1}}`,
			want:   Verdict{Unknown, "its controller has not reported a status yet"},
		},
	})
}

func TestJob(t *testing.T) {
	run(t, of("batch", "Job"), map[string]builtinCase{
		"Complete": {
			reason: "its work is done",
			object: `{status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`,
			want:   Verdict{Status: True},
		},
		"Failed": {
			reason: "with the reason",
			object: `{status: {failed: 7, conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded, message: limit},
				{type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}`,
			want: Verdict{False, "failed; BackoffLimitExceeded: Job has reached the specified backoff limit"},
		},
		"Failing": {
			reason: "the outcome is certain before the pods are gone",
			object: `{status: {conditions: [{type: FailureTarget, status: "True", reason: DeadlineExceeded, message: too long}]}}`,
			want:   Verdict{False, "is failing; DeadlineExceeded: too long"},
		},
		"Suspended": {
			reason: "it will not move by itself",
			object: `{status: {conditions: [{type: Suspended, status: "True", reason: JobSuspended, message: Job suspended}]}}`,
			want:   Verdict{False, "is suspended (spec.suspend); JobSuspended: Job suspended"},
		},
		"Running": {
			reason: "progress in numbers; a Job that runs is not done",
			object: `{status: {active: 1, failed: 2, succeeded: 0}}`,
			want:   Verdict{False, "not complete, 1 pod running, 2 pods failed"},
		},
		"Created": {
			reason: "no status at all",
			object: `{spec: {}}`,
			want:   Verdict{False, "not complete"},
		},
	})
}

func TestPod(t *testing.T) {
	run(t, of("", "Pod"), map[string]builtinCase{
		"Ready": {
			reason: "the kubelet says so",
			object: `{metadata: {generation: 1}, status: {phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
			want:   Verdict{Status: True},
		},
		"Succeeded": {
			reason: "it ran to its end; Ready is False then",
			object: `{status: {phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}}`,
			want:   Verdict{Status: True},
		},
		"Failed": {
			reason: "with the reason of the pod",
			object: `{status: {phase: Failed, reason: Evicted, message: The node was low on memory.}}`,
			want:   Verdict{False, "failed; Evicted: The node was low on memory."},
		},
		"Unschedulable": {
			reason: "the scheduler's reason matters more than that it is not ready",
			object: `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/3 nodes are available}]}}`,
			want:   Verdict{False, "not scheduled; Unschedulable: 0/3 nodes are available"},
		},
		"CrashLoop": {
			reason: "by container, without the back-off seconds; the two reasons of a failing pull are one",
			object: `{status: {phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "containers with unready status: [b a]"}],
				containerStatuses: [{name: b, state: {waiting: {reason: CrashLoopBackOff, message: back-off 2m40s}}}, {name: a, state: {waiting: {reason: ErrImagePull}}}]}}`,
			want: Verdict{False, "condition Ready is False, want True; ContainersNotReady: containers with unready status: [b a]; container a: ImagePullBackOff; container b: CrashLoopBackOff"},
		},
	})
}

func TestClaim(t *testing.T) {
	run(t, of("", "PersistentVolumeClaim"), map[string]builtinCase{
		"Bound": {
			reason: "done",
			object: `{spec: {storageClassName: fast, volumeName: pv-1}, status: {phase: Bound, capacity: {storage: 1Gi}}}`,
			want:   Verdict{Status: True},
		},
		"WaitsForFirstConsumer": {
			reason: "nobody works on it, and nobody will before a pod in a later stage uses it",
			object: `{metadata: {annotations: {}}, spec: {storageClassName: local}, status: {phase: Pending}}`,
			want:   Verdict{Status: True},
		},
		"ConsumerScheduled": {
			reason: "now someone works on it",
			object: `{metadata: {annotations: {volume.kubernetes.io/selected-node: node-1}}, spec: {storageClassName: local}, status: {phase: Pending}}`,
			want:   Verdict{False, "waiting for a volume for node node-1"},
		},
		"Provisioning": {
			reason: "the class binds at once",
			object: `{metadata: {annotations: {volume.kubernetes.io/storage-provisioner: ebs.csi.aws.com}}, spec: {storageClassName: gp3}, status: {phase: Pending}}`,
			want:   Verdict{False, "waiting for a volume from provisioner ebs.csi.aws.com"},
		},
		"ProvisioningOldAnnotation": {
			reason: "the beta name of the annotation",
			object: `{metadata: {annotations: {volume.beta.kubernetes.io/storage-provisioner: x}}, spec: {storageClassName: gp3}, status: {phase: Pending}}`,
			want:   Verdict{False, "waiting for a volume from provisioner x"},
		},
		"NoClass": {
			reason: "binding never waits for a consumer without a class, only for a volume",
			object: `{spec: {storageClassName: ""}, status: {phase: Pending}}`,
			want:   Verdict{False, "waiting for a persistent volume that fits: it has no storage class, so none is made for it"},
		},
		"ClassByAnnotation": {
			reason: "the beta way to name a class",
			object: `{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: local}}, status: {phase: Pending}}`,
			want:   Verdict{Status: True},
		},
		"VolumeChosen": {
			reason: "a named volume binds without a consumer",
			object: `{spec: {storageClassName: local, volumeName: pv-1}, status: {phase: Pending}}`,
			want:   Verdict{False, "waiting to be bound to volume pv-1"},
		},
		"Lost": {
			reason: "only a person can help",
			object: `{spec: {volumeName: pv-1}, status: {phase: Lost}}`,
			want:   Verdict{False, "lost: its volume pv-1 does not exist any more"},
		},
		"NoStatus": {
			reason: "not even Pending is said",
			object: `{spec: {storageClassName: local}}`,
			want:   Verdict{Unknown, "its status has no phase yet"},
		},
		"OddPhase": {
			reason: "a phase of the future is not guessed at",
			object: `{spec: {storageClassName: local}, status: {phase: Melting}}`,
			want:   Verdict{Unknown, `its phase "Melting" is not a known one`},
		},
	})
}

func TestNamespace(t *testing.T) {
	run(t, of("", "Namespace"), map[string]builtinCase{
		"Active": {
			reason: "objects can be created in it",
			object: `{spec: {finalizers: [kubernetes]}, status: {phase: Active}}`,
			want:   Verdict{Status: True},
		},
		"Terminating": {
			reason: "nothing can be created; why it does not end is in its conditions",
			object: `{metadata: {deletionTimestamp: "2026-11-21T10:00:00Z"}, status: {phase: Terminating, conditions: [
				{type: NamespaceFinalizersRemaining, status: "True", reason: SomeFinalizersRemain, message: "example.com/x in 1 resource instances"},
				{type: NamespaceDeletionDiscoveryFailure, status: "False", reason: ResourcesDiscovered, message: fine}]}}`,
			want: Verdict{False, "is being deleted; its phase is Terminating, want Active; SomeFinalizersRemain: example.com/x in 1 resource instances"},
		},
		"NoStatus": {
			reason: "metadata alone is no answer",
			object: `{metadata: {name: a}}`,
			want:   Verdict{Unknown, "its status has no phase yet"},
		},
	})
}

func TestDefinition(t *testing.T) {
	run(t, of("apiextensions.k8s.io", "CustomResourceDefinition"), map[string]builtinCase{
		"Established": {
			reason: "served under its names; generations of its conditions mean nothing",
			object: `{metadata: {generation: 4}, status: {conditions: [{type: NamesAccepted, status: "True", observedGeneration: 1}, {type: Established, status: "True"}]}}`,
			want:   Verdict{Status: True},
		},
		"NamesTaken": {
			reason: "another definition has its names: a person must decide",
			object: `{status: {conditions: [{type: NamesAccepted, status: "False", reason: PluralConflict, message: '"widgets" is already in use'},
				{type: Established, status: "False", reason: NotAccepted, message: not all names are accepted}]}}`,
			want: Verdict{False, `condition NamesAccepted is False; PluralConflict: "widgets" is already in use; condition Established is False; NotAccepted: not all names are accepted`},
		},
		"EstablishedUnderOldNames": {
			reason: "Established stays True when a rename is refused",
			object: `{status: {conditions: [{type: NamesAccepted, status: "False", reason: ShortNamesConflict}, {type: Established, status: "True"}]}}`,
			want:   Verdict{False, "condition NamesAccepted is False; ShortNamesConflict"},
		},
		"Installing": {
			reason: "for about a second after its creation",
			object: `{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: Installing, message: the initial names have been accepted}]}}`,
			want:   Verdict{False, "condition Established is False; Installing: the initial names have been accepted"},
		},
		"NoStatus": {
			reason: "just created",
			object: `{spec: {}}`,
			want:   Verdict{Unknown, "has no condition NamesAccepted yet; has no condition Established yet"},
		},
	})
}

func TestAPIService(t *testing.T) {
	run(t, of("apiregistration.k8s.io", "APIService"), map[string]builtinCase{
		"Available": {
			reason: "its server answers",
			object: `{status: {conditions: [{type: Available, status: "True", reason: Passed, message: all checks passed}]}}`,
			want:   Verdict{Status: True},
		},
		"MissingEndpoints": {
			reason: "its Service has no ready pod",
			object: `{status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: endpoints for service/api have no addresses}]}}`,
			want:   Verdict{False, "condition Available is False; MissingEndpoints: endpoints for service/api have no addresses"},
		},
	})
}

func TestCertManager(t *testing.T) {
	for _, kind := range []string{"Certificate", "Issuer", "ClusterIssuer"} {
		run(t, of("cert-manager.io", kind), map[string]builtinCase{
			kind + "Ready": {
				reason: "of this generation",
				object: `{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 2}]}}`,
				want:   Verdict{Status: True},
			},
			kind + "ReadyBefore": {
				reason: "the previous spec was ready, which says nothing of this one",
				object: `{metadata: {generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
				want:   Verdict{Unknown, "condition Ready is of generation 1, the object of 2"},
			},
			kind + "NotReady": {
				reason: "times are left out, they would change status by themselves",
				object: `{metadata: {generation: 1}, status: {conditions: [{type: Ready, status: "False", observedGeneration: 1, reason: Renewing,
					message: "Renewing certificate as renewal was scheduled at 2026-11-21 08:00:00 +0000 UTC"}]}}`,
				want: Verdict{False, "condition Ready is False, want True; Renewing: Renewing certificate as renewal was scheduled at (time)"},
			},
		})
	}
}

func TestBuiltinHasNoOtherKinds(t *testing.T) {
	for _, kind := range []schema.GroupKind{
		of("", "ConfigMap"), of("", "Secret"), of("", "Service"), of("extensions", "Deployment"), of("example.com", "Certificate"),
	} {
		if p := Builtin().For(kind); p != nil {
			t.Errorf("%s has a probe: nothing is known of what makes it ready", kind)
		}
	}
}

func TestBuiltinReads(t *testing.T) {
	cases := map[string]struct {
		kind schema.GroupKind
		want Reads
	}{
		"Deployment": {of("apps", "Deployment"), Reads{Status: true, Fields: [][]string{{"spec", "paused"}, {"spec", "replicas"}}}},
		"DaemonSet":  {of("apps", "DaemonSet"), Reads{Status: true, Fields: [][]string{{"spec", "updateStrategy"}}}},
		"Job":        {of("batch", "Job"), Reads{Status: true}},
		"CRD":        {of("apiextensions.k8s.io", "CustomResourceDefinition"), Reads{Fields: [][]string{{"status", "conditions"}}}},
		"Claim": {of("", "PersistentVolumeClaim"), Reads{Fields: [][]string{
			{"spec", "storageClassName"}, {"spec", "volumeName"}, {"status", "phase"}}}},
		"Certificate": {of("cert-manager.io", "Certificate"), Reads{Fields: [][]string{{"status", "conditions"}, {"status", "observedGeneration"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Builtin().For(tc.kind).Reads(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("what is kept in memory of every %s (-want +got):\n%s", name, diff)
			}
		})
	}
}

func TestMessagesAreShort(t *testing.T) {
	object := live(t, `{metadata: {generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, conditions: [
		{type: ReplicaFailure, status: "True", reason: FailedCreate}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}}`)
	conditions := object.Object["status"].(map[string]any)["conditions"].([]any)
	for _, c := range conditions {
		c.(map[string]any)["message"] = strings.Repeat("ü", 1<<20)
	}
	got := Builtin().For(of("apps", "Deployment")).Probe(object)
	if len(got.Message) > MaxMessageBytes {
		t.Errorf("message has %d bytes, at most %d are allowed", len(got.Message), MaxMessageBytes)
	}
	for _, part := range []string{"0 of 1 replica available", "FailedCreate", "ProgressDeadlineExceeded"} {
		if !strings.Contains(got.Message, part) {
			t.Errorf("one long message crowded out %q: %s", part, got.Message)
		}
	}
}

func TestBuiltinIsDocumented(t *testing.T) {
	const page = "../../../docs/reference/probes.md"
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatalf("reading the page: %v", err)
	}
	want, got := []string{}, []string{}
	for kind := range builtin() {
		want = append(want, kind.String())
	}
	_, table, _ := strings.Cut(string(content), "| kind | is ready when |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		got = append(got, strings.Split(strings.Split(row, " | ")[0][len("| "):], ", ")...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s lists other kinds (-code +page):\n%s", page, diff)
	}
}
