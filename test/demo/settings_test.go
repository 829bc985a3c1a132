package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseSettings(t *testing.T) {
	defaults := settings{
		From: "artifacts/examples/lighthouse/v1.0.0", To: "artifacts/examples/lighthouse/v1.1.0",
		Stuck: "artifacts/examples/lighthouse/v1.2.0-stuck", Name: "lighthouse", Silence: time.Minute, Penstock: "bin/penstock",
		Plans: "artifacts/examples/rebalancing",
	}
	with := func(change func(*settings)) settings {
		s := defaults
		change(&s)
		return s
	}
	cases := map[string]struct {
		reason string
		env    map[string]string
		want   settings
		err    string
	}{
		"nothing": {"the example operator", nil, defaults, ""},
		"own manifests": {
			"the stuck upgrade is made from TO", map[string]string{"FROM": "a", "TO": "b", "NAME": "x"},
			with(func(s *settings) { s.From, s.To, s.Stuck, s.Name = "a", "b", "", "x" }), "",
		},
		"no upgrade": {
			"TO may be missing", map[string]string{"FROM": "a", "NAME": "x"},
			with(func(s *settings) { s.From, s.To, s.Stuck, s.Name = "a", "", "", "x" }), "",
		},
		"others": {
			"all the rest", map[string]string{"SILENCE": "5s", "KEEP": "1", "PENSTOCK": "/p", "IMAGE": "i", "ACTS": "4"},
			with(func(s *settings) {
				s.Silence, s.Keep, s.Penstock, s.Image, s.Acts = 5*time.Second, true, "/p", "i", 4
			}), "",
		},
		"fleet": {
			"the acts about many clusters have manifests of their own", map[string]string{"FLEET": "1", "ACTS": "2"},
			with(func(s *settings) { s.From, s.To, s.Stuck, s.Name, s.Fleet, s.Acts = "", "", "", "lamp", true, 2 }), "",
		},
		"fleet of what": {"a typing error must not play the others", map[string]string{"FLEET": "yes"}, settings{}, `FLEET is "yes"`},
		"fleet with":    {"the manifests would be ignored", map[string]string{"FLEET": "1", "FROM": "a", "NAME": "b"}, settings{}, "FLEET=1 brings its own manifests"},
		"off":           {"as a variable that is not set", map[string]string{"KEEP": "0"}, defaults, ""},
		"no name":       {"a name cannot be guessed", map[string]string{"FROM": "a"}, settings{}, "NAME is missing"},
		"only TO":       {"an upgrade of what?", map[string]string{"TO": "b"}, settings{}, "FROM is missing"},
		"only NAME":     {"a name of what?", map[string]string{"NAME": "b"}, settings{}, "FROM is missing"},
		"no time":       {"nothing would be heard", map[string]string{"SILENCE": "0"}, settings{}, `SILENCE is "0": want whole seconds, 1 to 3600`},
		"no number":     {"", map[string]string{"SILENCE": "long"}, settings{}, `SILENCE is "long"`},
		"no act":        {"nothing would be shown", map[string]string{"ACTS": "0"}, settings{}, fmt.Sprintf(`ACTS is "0": want how many to play, 1 to %d`, len(acts()))},
		"keep what":     {"a typing error must not throw the cluster away", map[string]string{"KEEP": "ture"}, settings{}, `KEEP is "ture"`},
		"all mistakes":  {"are told at once", map[string]string{"FROM": "a", "KEEP": "x"}, settings{}, "NAME is missing: with FROM give NAME, what to call the extension\nKEEP"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseSettings(func(key string) string { return tc.env[key] }, ".")
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: the error is %v, want %q", tc.reason, err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v (-want +got)\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestCheckNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	s := settings{From: dir, To: filepath.Join(dir, "absent"), Penstock: filepath.Join(dir, "penstock")}
	err := s.check()
	for _, want := range []string{"TO: ", "is not a directory", "make build"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), "FROM") {
		t.Errorf("FROM exists: %v", err)
	}
}
