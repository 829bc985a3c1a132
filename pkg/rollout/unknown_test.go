package rollout

import (
	"errors"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/rollout/observe"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/rollout/targetclient"
)

// blindfold is an observer that does not see some objects, or only parts of them.
type blindfold struct {
	Observer
	hidden  map[manifest.ID]bool
	stale   map[manifest.ID]bool
	partly  map[manifest.ID]bool
	trouble error
}

func (b *blindfold) Get(id manifest.ID) (observe.Observation, observe.Presence) {
	if b.hidden[id] {
		return observe.Observation{ID: id}, observe.Unknown
	}
	seen, presence := b.Observer.Get(id)
	seen.Stale = b.stale[id]
	if b.partly[id] {
		seen.Kept = &probe.Reads{}
	}
	return seen, presence
}

func (b *blindfold) Trouble(manifest.ID) error { return b.trouble }

// TestUnknown: an object that cannot be read counts as neither right nor wrong, and is not written.
func TestUnknown(t *testing.T) {
	x, y := refOf("ConfigMap a/x").ID, refOf("Deployment.apps a/y").ID
	cases := map[string]struct {
		reason         string
		hidden, partly map[manifest.ID]bool
		stale          map[manifest.ID]bool
		trouble        error
		meddle         func(*saga)
		want           string
		unknown        bool
	}{
		"all is seen":     {reason: "all is well", want: ""},
		"no answer yet":   {reason: "the watches have just been opened", hidden: map[manifest.ID]bool{x: true, y: true}, want: ReasonWaiting, unknown: true},
		"one is not seen": {reason: "the others are right", hidden: map[manifest.ID]bool{x: true}, want: ReasonWaiting, unknown: true},
		"not what is read": {
			reason: "another chain's probe asked first, and reads less", partly: map[manifest.ID]bool{y: true}, want: ReasonProbe, unknown: true,
		},
		"unreachable": {
			reason: "a server that does not answer says nothing", hidden: map[manifest.ID]bool{x: true}, want: ReasonUnreachable, unknown: true,
			trouble: &url.Error{Op: "Get", URL: "https://host", Err: errors.New("connection refused")},
		},
		"unreachable since": {
			reason: "what was right when it was seen last may be so still", stale: map[manifest.ID]bool{x: true, y: true}, want: ReasonUnreachable, unknown: true,
			trouble: &url.Error{Op: "Get", URL: "https://host", Err: errors.New("connection refused")},
		},
		"refused since": {
			reason: "the server is there, and others see it", stale: map[manifest.ID]bool{x: true},
			trouble: apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no")),
		},
		"not served": {
			reason: "what nobody serves is not there", hidden: map[manifest.ID]bool{x: true}, want: ReasonNotServed, trouble: &targetclient.KindUnknownError{},
		},
		"another one is wrong": {
			reason: "that is known", hidden: map[manifest.ID]bool{x: true}, want: ReasonWaiting,
			meddle: func(s *saga) { s.alter(y, func(o *thing) { o.readyAt = 0 }) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSaga()
			s.roll(t, s.revision(1).phase("base", "ConfigMap a/x=1", "Deployment.apps a/y=1"))
			s.spent()
			s.restart()
			s.engine.Observer = &blindfold{Observer: s.engine.Observer, hidden: tc.hidden, stale: tc.stale, partly: tc.partly, trouble: tc.trouble}
			if tc.meddle != nil {
				tc.meddle(s)
			}
			report, err := s.pass()
			if err != nil {
				t.Fatal(err)
			}
			layer := report.Layers[0]
			got := ""
			if failing := layer.Phases[0].Failures; len(failing) > 0 {
				got = failing[0].Reason
			}
			if got != tc.want || layer.Unknown != tc.unknown || layer.Complete != (tc.want == "") {
				t.Errorf("%s: %q unknown=%t, want %q unknown=%t: %v", tc.reason, got, layer.Unknown, tc.want, tc.unknown, lines(report))
			}
			if writes, reads := s.spent(); len(writes)+len(reads) > 0 {
				t.Errorf("%s: requests were made: %v %v", tc.reason, writes, reads)
			}
		})
	}
}
