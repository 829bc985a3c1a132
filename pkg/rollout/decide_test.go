package rollout

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/stage"
)

const (
	want    = manifest.Digest("sha256:want")
	before  = manifest.Digest("sha256:before")
	ourUID  = "uid-1"
	manager = "penstock/argocd"
)

var argocd = Identity{Chain: "argocd", Manager: manager}

// live builds the observation of a present object.
type live struct{ Seen }

func present() live {
	return live{Seen{Presence: observe.Present, Observation: observe.Observation{
		UID: ourUID, ResourceVersion: "10", Generation: 1,
	}}}
}

// ours sets all marks of an apply of the given content by argocd.
func (l live) ours(digest manifest.Digest) live {
	l.Chain, l.Applied = "argocd", digest
	l.Entries = []observe.Entry{{Manager: manager, Digest: "entry-1"}}
	return l
}

func (l live) entry(digest string) live {
	l.Entries = []observe.Entry{{Manager: manager, Digest: digest}}
	return l
}

func (l live) with(change func(*observe.Observation)) live {
	change(&l.Observation)
	return l
}

func controlled(o *observe.Observation) {
	o.Controller = &metav1.OwnerReference{Kind: "Database", Name: "main"}
}

func recorded(digest manifest.Digest) *Entry {
	return &Entry{UID: ourUID, Digest: digest, ManagedEntry: "entry-1", Generation: 1, ResourceVersion: "10"}
}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		reason string
		adopt  stage.Adoption
		seen   Seen
		memo   *Entry
		want   Action
	}{
		"unknown": {
			reason: "a missing answer is not an absence",
			seen:   Seen{Presence: observe.Unknown}, want: Deferred,
		},
		"unknown, recorded": {
			reason: "nor is it for what we made",
			seen:   Seen{Presence: observe.Unknown}, memo: recorded(want), want: Deferred,
		},
		"absent": {
			reason: "nothing there, nothing remembered",
			seen:   Seen{Presence: observe.Absent}, want: Create,
		},
		"absent, intent": {
			reason: "a crash came before the write",
			seen:   Seen{Presence: observe.Absent}, memo: &Entry{}, want: Create,
		},
		"absent, deleted by someone": {
			reason: "the watch is past our write and does not have it",
			seen:   Seen{Presence: observe.Absent, Observation: observe.Observation{ResourceVersion: "11"}}, memo: recorded(want), want: Create,
		},
		"absent, not seen yet": {
			reason: "the watch is behind our own write",
			seen:   Seen{Presence: observe.Absent, Observation: observe.Observation{ResourceVersion: "9"}}, memo: recorded(want), want: Deferred,
		},
		"ours, as recorded": {
			reason: "nothing changed", seen: present().ours(want).Seen, memo: recorded(want), want: Idle,
		},
		"ours, older content": {
			reason: "the manifest changed", seen: present().ours(before).Seen, memo: recorded(before), want: Update,
		},
		"ours, no record": {
			reason: "a crash came between the write and its record", seen: present().ours(want).Seen, want: Update,
		},
		"ours, intent": {
			reason: "the same, with the intent stored", seen: present().ours(want).Seen, memo: &Entry{}, want: Update,
		},
		"ours, made again, no record": {
			reason: "a crash came between making it again and the record; its entry may look as the first one's did",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.UID = "uid-2" }).Seen, memo: recorded(want), want: Update,
		},
		"ours, entry changed": {
			reason: "someone changed a value of ours", seen: present().ours(want).entry("entry-2").Seen, memo: recorded(want), want: Repair,
		},
		"ours, entry gone": {
			reason: "managedFields were wiped",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.Entries = nil }).Seen, memo: recorded(want), want: Repair,
		},
		"ours, label stripped": {
			reason: "our label is a value of ours",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.Chain = "" }).Seen, memo: recorded(want), want: Repair,
		},
		"ours, annotation forged": {
			reason: "so is the annotation",
			seen:   present().ours(before).Seen, memo: recorded(want), want: Repair,
		},
		"ours, generation moved": {
			reason: "a webhook may have changed what nobody claims",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.Generation = 2; o.ResourceVersion = "11" }).Seen, memo: recorded(want), want: Verify,
		},
		"ours, status written": {
			reason: "the resource version of a kind with generations means nothing",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.ResourceVersion = "11" }).Seen, memo: recorded(want), want: Idle,
		},
		"ours, no generations, written": {
			reason: "without generations the resource version is all there is",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.Generation = 0; o.ResourceVersion = "11" }).Seen,
			memo:   &Entry{UID: ourUID, Digest: want, ManagedEntry: "entry-1", ResourceVersion: "10"}, want: Verify,
		},
		"ours, no generations, untouched": {
			reason: "and it did not move",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.Generation = 0 }).Seen,
			memo:   &Entry{UID: ourUID, Digest: want, ManagedEntry: "entry-1", ResourceVersion: "10"}, want: Idle,
		},
		"ours, being deleted": {
			reason: "it cannot be kept; it is made again when it is gone",
			seen:   present().ours(want).with(func(o *observe.Observation) { o.Deleting = true }).Seen, memo: recorded(want), want: Deferred,
		},
		"ours by record, controller added": {
			reason: "an owner reference that someone added takes nothing from us",
			seen:   present().ours(want).with(controlled).Seen, memo: recorded(want), want: Idle,
		},
		"foreign, prevent": {
			reason: "never", adopt: stage.AdoptNever, seen: present().Seen, want: Collision,
		},
		"foreign, uncontrolled": {
			reason: "nobody is in charge of it", adopt: stage.AdoptUncontrolled, seen: present().Seen, want: Adopt,
		},
		"foreign, always": {
			reason: "asked for", adopt: stage.AdoptAlways, seen: present().Seen, want: Adopt,
		},
		"controlled, uncontrolled only": {
			reason: "its controller would fight", adopt: stage.AdoptUncontrolled, seen: present().with(controlled).Seen, want: Collision,
		},
		"controlled, always": {
			reason: "asked for", adopt: stage.AdoptAlways, seen: present().with(controlled).Seen, want: Adopt,
		},
		"other chain, uncontrolled only": {
			reason: "another chain is in charge of it", adopt: stage.AdoptUncontrolled,
			seen: present().with(func(o *observe.Observation) { o.Chain = "flux" }).Seen, want: Collision,
		},
		"other chain, always": {
			reason: "asked for", adopt: stage.AdoptAlways,
			seen: present().with(func(o *observe.Observation) { o.Chain = "flux" }).Seen, want: Adopt,
		},
		"taken over by another chain": {
			reason: "two chains that both take everything over must not fight", adopt: stage.AdoptAlways,
			seen: present().with(func(o *observe.Observation) {
				o.Chain, o.Entries = "flux", []observe.Entry{{Manager: "penstock/flux", Digest: "theirs"}}
			}).Seen, memo: recorded(want), want: Collision,
		},
		"label changed": {
			reason: "the label of a chain that never applied it is an edit", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Chain = "flux" }).Seen, memo: recorded(want), want: Repair,
		},
		"replaced by someone": {
			reason: "another object under the name of ours is not ours", adopt: stage.AdoptAlways,
			seen: present().with(func(o *observe.Observation) { o.UID = "uid-2" }).Seen, memo: recorded(want), want: Collision,
		},
		"intent, someone was faster": {
			reason: "the object is not by us", adopt: stage.AdoptNever, seen: present().Seen, memo: &Entry{}, want: Collision,
		},
		"intent to adopt": {
			reason: "the crash came before the adoption", adopt: stage.AdoptUncontrolled, seen: present().Seen, memo: &Entry{}, want: Adopt,
		},
		"written, killed, robbed of its label": {
			reason: "we meant to make it, and a label is an edit", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Chain = "" }).Seen, memo: &Entry{}, want: Update,
		},
		"made anew, killed, robbed of its label": {
			reason: "the record is of the object before", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.UID, o.Chain = "uid-2", "" }).Seen, memo: recorded(want), want: Update,
		},
		"written, killed, managedFields wiped": {
			reason: "we meant to make it, and the label and the annotation say that it was us", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Entries, o.Wiped = nil, true }).Seen, memo: &Entry{}, want: Update,
		},
		"made anew, killed, managedFields wiped": {
			reason: "the record is of the object before", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.UID, o.Entries, o.Wiped = "uid-2", nil, true }).Seen, memo: recorded(want), want: Update,
		},
		"written, killed, robbed of its annotation": {
			reason: "two marks are left", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Applied = "" }).Seen, memo: &Entry{}, want: Update,
		},
		"one mark is left": {
			reason: "it may have come from anywhere", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.UID, o.Chain, o.Entries, o.Wiped = "uid-2", "", nil, true }).Seen, memo: recorded(want), want: Collision,
		},
		"a copy, made anew by somebody": {
			reason: "a restore from a backup does that: only the uid and the field managers are lost", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.UID, o.Entries = "uid-2", nil }).Seen, memo: recorded(want), want: Adopt,
		},
		"restored from an older backup": {
			reason: "the extension was upgraded since", adopt: stage.AdoptNever,
			seen: present().ours(before).with(func(o *observe.Observation) { o.UID, o.Entries = "uid-2", nil }).Seen, memo: recorded(want), want: Adopt,
		},
		"restored, and controlled": {
			reason: "a controller has it in its hands", adopt: stage.AdoptNever,
			seen: present().ours(want).with(controlled).with(func(o *observe.Observation) { o.UID, o.Entries = "uid-2", nil }).Seen, memo: recorded(want), want: Collision,
		},
		"restored without a record": {
			reason: "into another cluster, or beside another store: its annotation names this manifest", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Entries = nil }).Seen, want: Adopt,
		},
		"a copy under another name, without a record": {
			reason: "its annotation names the manifest of the original", adopt: stage.AdoptNever,
			seen: present().ours(before).with(func(o *observe.Observation) { o.Entries = nil }).Seen, want: Collision,
		},
		"a copy where one is to be adopted": {
			reason: "what it has of its author is to go", adopt: stage.AdoptAlways,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Entries = nil }).Seen, memo: &Entry{}, want: Adopt,
		},
		"another chain's, with our label": {
			reason: "a label is an edit, and the entry is that of the other chain", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) {
				o.UID, o.Entries = "uid-2", []observe.Entry{{Manager: "penstock/other", Digest: "entry-1"}}
			}).Seen, memo: recorded(want), want: Collision,
		},
		"made anew, wiped, and somebody's": {
			reason: "a controller has it in its hands", adopt: stage.AdoptNever,
			seen: present().ours(want).with(controlled).with(func(o *observe.Observation) { o.UID, o.Entries, o.Wiped = "uid-2", nil, true }).Seen,
			memo: recorded(want), want: Collision,
		},
		"managedFields wiped, never meant": {
			reason: "the annotation names this manifest, as after a restore", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Entries, o.Wiped = nil, true }).Seen, want: Adopt,
		},
		"robbed of its label, never meant": {
			reason: "nothing but what anyone can set says that it is ours", adopt: stage.AdoptNever,
			seen: present().ours(want).with(func(o *observe.Observation) { o.Chain = "" }).Seen, want: Collision,
		},
		"marks incomplete": {
			reason: "a label alone, which anyone can set, does not make it ours", adopt: stage.AdoptNever,
			seen: present().with(func(o *observe.Observation) { o.Chain = "argocd" }).Seen, want: Collision,
		},
		"foreign, being deleted": {
			reason: "it will be gone", adopt: stage.AdoptAlways,
			seen: present().with(func(o *observe.Observation) { o.Deleting = true }).Seen, want: Deferred,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			step := stage.Step{Ref: manifest.Ref{Digest: want}, Policy: stage.Policy{Adopt: tc.adopt}}
			got := Decide(argocd, step, tc.seen, tc.memo)
			if diff := cmp.Diff(tc.want, got.Action); diff != "" {
				t.Errorf("%s: (-want +got)\n%s%s", tc.reason, diff, got.Message)
			}
			if (got.Action == Collision || got.Action == Deferred) == (got.Message == "") {
				t.Errorf("a %s with the message %q", got.Action, got.Message)
			}
		})
	}
}

func TestNewestPrefersTheInventoryToALaggingWatch(t *testing.T) {
	memo := &Entry{UID: ourUID, Digest: want, ManagedEntry: "entry-2", Generation: 2, ResourceVersion: "12"}
	cases := map[string]struct {
		reason string
		seen   Seen
		want   string
	}{
		"behind our write": {"the watch will catch up", present().ours(before).Seen, "12"},
		"beyond our write": {"the watch knows more", present().with(func(o *observe.Observation) { o.ResourceVersion = "13" }).Seen, "13"},
		"another object":   {"versions of another object say nothing", present().with(func(o *observe.Observation) { o.UID = "uid-2" }).Seen, "10"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := newest(argocd, tc.seen.Observation, memo); got.ResourceVersion != tc.want {
				t.Errorf("%s: got resource version %s, want %s", tc.reason, got.ResourceVersion, tc.want)
			}
		})
	}
}
