package identity

import (
	"strings"
	"testing"
)

func TestJudge(t *testing.T) {
	store := func(id string, format int, revision int64) Observed {
		return Observed{Found: true, ID: id, Format: format, Revision: revision, HighWater: revision}
	}
	mark := func(id string, format int, highWater int64) *Mark {
		return &Mark{StoreID: id, Format: format, HighWater: highWater}
	}
	cases := map[string]struct {
		reason   string
		observed Observed
		mark     *Mark
		want     State
		says     string
	}{
		"Nothing":          {reason: "neither store nor witness", observed: Observed{Revision: 1}, want: FirstStart, says: "first start"},
		"NothingButOthers": {reason: "an external etcd has revisions of others", observed: Observed{Revision: 5000}, want: FirstStart, says: "first start"},
		"Witnessed":        {reason: "the store is where it was", observed: store("a", 1, 90), mark: mark("a", 1, 90), want: Healthy, says: "as witnessed"},
		"Ahead":            {reason: "the witness is written now and then only", observed: store("a", 1, 95), mark: mark("a", 1, 90), want: Healthy, says: "as witnessed"},
		"NewestDeleted": {
			reason:   "the newest record was deleted: records are older than the mark, etcd is not",
			observed: Observed{Found: true, ID: "a", Format: 1, Revision: 91, HighWater: 12},
			mark:     mark("a", 1, 90), want: Healthy, says: "as witnessed",
		},
		"NotWitnessedYet": {reason: "it died between creating the store and the witness", observed: store("a", 1, 2), want: Healthy, says: "no witness of it yet"},
		"EmptyStore":      {reason: "the data directory is gone", observed: Observed{Revision: 1}, mark: mark("a", 1, 90), want: Empty, says: "data is lost"},
		"EmptyBusyEtcd":   {reason: "an external etcd lost our prefix only", observed: Observed{Revision: 5000}, mark: mark("a", 1, 90), want: Empty, says: "data is lost"},
		"NoIdentity":      {reason: "records that nobody vouches for", observed: Observed{Revision: 50, HighWater: 40}, want: Foreign, says: "no identity"},
		"IdentityLost":    {reason: "records without identity where a store was", observed: Observed{Revision: 95, HighWater: 40}, mark: mark("a", 1, 90), want: Foreign, says: "no identity"},
		"OtherStore":      {reason: "the store of another cluster", observed: store("b", 1, 95), mark: mark("a", 1, 90), want: Foreign, says: "another cluster"},
		"OtherAndOlder":   {reason: "revisions of two stores cannot be compared", observed: store("b", 1, 2), mark: mark("a", 1, 90), want: Foreign, says: "another cluster"},
		"Backup":          {reason: "restored from before the mark", observed: store("a", 1, 89), mark: mark("a", 1, 90), want: Older, says: "at etcd revision 89"},
		"Restored": {reason: "restored: etcd is ahead of the mark, the content is not", observed: Observed{Found: true, ID: "a", Format: 1, Epoch: 1, Revision: 1e9, HighWater: 80},
			mark: mark("a", 1, 90), want: Restored, says: "was restored from a snapshot"},
		"RestoredAccepted": {reason: "somebody has accepted it", observed: Observed{Found: true, ID: "a", Format: 1, Epoch: 1, Revision: 1e9, HighWater: 80},
			mark: &Mark{StoreID: "a", Format: 1, HighWater: 80, Epoch: 1}, want: Healthy, says: "as witnessed"},
		"RestoredAnew": {reason: "restored into a cluster that knows nothing", observed: Observed{Found: true, ID: "a", Format: 1, Epoch: 1, Revision: 1e9, HighWater: 80},
			want: Restored, says: "no witness of it"},
		"BeforeRestoring": {reason: "the old copy after a restore", observed: store("a", 1, 2e9),
			mark: &Mark{StoreID: "a", Format: 1, HighWater: 80, Epoch: 1}, want: Older, says: "before it was restored"},
		"NewerStore": {reason: "a newer Penstock wrote it", observed: Observed{Found: true, Format: Format + 1, Revision: 9, HighWater: 9}, mark: mark("a", 1, 5), want: NewerFormat, says: "newer Penstock"},
		"NewerUnwitnessed": {reason: "the same without a witness", observed: Observed{Found: true, Format: Format + 1, Revision: 9, HighWater: 9},
			want: NewerFormat, says: "newer Penstock"},
		"NewerWitness":    {reason: "the store was upgraded, and this is a copy from before", observed: store("a", 1, 95), mark: mark("a", Format+1, 90), want: NewerFormat, says: "newer Penstock"},
		"EmptyNewer":      {reason: "this Penstock must not start an old store over", observed: Observed{Revision: 1}, mark: mark("a", Format+1, 90), want: NewerFormat, says: "newer Penstock"},
		"OlderFormat":     {reason: "the format was higher once", observed: store("a", 0, 95), mark: mark("a", 1, 90), want: Older, says: "format 0"},
		"IdentityRemoved": {reason: "an etcd that only lost the identity, unwitnessed", observed: Observed{Revision: 3, HighWater: 2}, want: Foreign, says: "no identity"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.observed, tc.mark)
			if got.State != tc.want || !strings.Contains(got.Reason, tc.says) {
				t.Errorf("%s: got %s (%s), want %s (…%s…)", tc.reason, got.State, got.Reason, tc.want, tc.says)
			}
			if serve := tc.want == FirstStart || tc.want == Healthy; got.Serve() != serve {
				t.Errorf("%s: serve is %v", tc.reason, got.Serve())
			}
		})
	}
}
