package olm_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestComputedReads: all pairs of reads and users. A user without a right sees no protected content
// in any computed read.
func TestComputedReads(t *testing.T) {
	s := newServer(t, settings{})
	const hidden, oldValue, newValue = "the-hidden-one", "hunter1", "hunter2"
	s.create(file("e-1", inline(configMap("a", "1"), secret(hidden, oldValue)))).want(t, http.StatusCreated)
	s.create(file("e-2", inline(configMap("a", "2"), secret(hidden, newValue)))).want(t, http.StatusCreated)
	s.create(file("f-1", inline(configMap("of-f", "1")))).want(t, http.StatusCreated)

	// The library checks the right to each path. So each right denied below is a right that the
	// read checks in addition.
	s.rules.set("bob", nil)
	s.rules.deny("carol", "get clusterextensionrevisions/diff e-1", "get clusterextensionrevisions/manifests e-1")
	s.rules.deny("dave", "get clusterextensionrevisions/diff f-1", "get clusterextensionrevisions/manifests f-1")
	s.rules.deny("erin", "get revisiondiffs e-1..e-2", "get revisionhistories e", "get clusterextensionrevisions/diff e-2", "get clusterextensionrevisions/history e-2", "get revisionmanifests e-1:ConfigMap:default:a")

	values, names := []string{oldValue, newValue, "aHVudGVy"}, []string{hidden}
	everything := append([]string{"ConfigMap", "configmap", "default"}, append(names, values...)...)
	const ok, forbidden = http.StatusOK, http.StatusForbidden
	type seen struct {
		code int
		not  []string
	}
	for path, tc := range map[string]map[string]seen{
		revisions + "/e-2/diff":                           {"alice": {ok, values}, "bob": {ok, append(names, values...)}, "carol": {ok, values}, "erin": {forbidden, everything}},
		revisions + "/e-1/diff":                           {"alice": {ok, values}, "bob": {ok, append(names, values...)}, "carol": {forbidden, everything}},
		revisions + "/e-2/diff?objectKind=Secret":         {"alice": {ok, values}, "bob": {ok, append(names, values...)}},
		diffs + "/e-1..e-2":                               {"alice": {ok, values}, "bob": {ok, append(names, values...)}, "carol": {forbidden, everything}, "dave": {ok, values}, "erin": {forbidden, everything}},
		diffs + "/..e-2":                                  {"alice": {ok, values}, "carol": {forbidden, everything}},
		diffs + "/e-1..":                                  {"alice": {ok, values}, "carol": {forbidden, everything}, "bob": {ok, append(names, values...)}},
		diffs + "/..e-1":                                  {"alice": {ok, values}, "carol": {forbidden, everything}},
		diffs + "/e-1..live":                              {"carol": {forbidden, everything}},
		diffs + "/e-2..f-1":                               {"alice": {ok, values}, "carol": {ok, values}, "dave": {forbidden, everything}},
		diffs + "/f-1..e-2":                               {"dave": {forbidden, everything}},
		diffs + "/f-1..e-9":                               {"dave": {forbidden, everything}},
		histories + "/e":                                  {"alice": {ok, everything}, "bob": {ok, everything}, "erin": {forbidden, everything}},
		revisions + "/e-2/history":                        {"alice": {ok, everything}, "bob": {ok, everything}, "erin": {forbidden, everything}},
		manifests + "/e-1:Secret:default:" + hidden:       {"alice": {ok, nil}, "bob": {forbidden, values}, "carol": {forbidden, values}},
		manifests + "/e-1:ConfigMap:default:a":            {"alice": {ok, nil}, "bob": {ok, append(names, values...)}, "carol": {forbidden, []string{"\"k\""}}, "erin": {forbidden, []string{"\"k\""}}},
		manifests + "/f-1:ConfigMap:default:of-f":         {"alice": {ok, nil}, "dave": {forbidden, []string{"\"k\""}}},
		manifests + "/f-1:ConfigMap:default:nothing-here": {"dave": {forbidden, nil}},
	} {
		for user, want := range tc {
			for _, accept := range []string{"application/json", asTable} {
				t.Run(user+path, func(t *testing.T) {
					got := s.subtest(t).do(call{method: http.MethodGet, path: path, user: user, accept: accept}).want(t, want.code)
					told := got.raw + strings.Join(got.warnings, " ")
					if want.code == forbidden {
						// The answer repeats the requested name.
						told = strings.ReplaceAll(told, path[strings.LastIndex(path, "/")+1:], "")
					}
					for _, not := range want.not {
						if strings.Contains(told, not) {
							t.Errorf("%s sees %q: %s", user, not, told)
						}
					}
				})
			}
		}
	}

	bobs := s.do(call{method: http.MethodGet, path: revisions + "/e-2/diff", user: "bob"}).want(t, ok)
	if withheld := at(bobs.body, "summary", "withheld"); withheld != 1.0 {
		t.Errorf("%v objects are withheld from bob, want 1", withheld)
	}
	table := s.do(call{method: http.MethodGet, path: revisions + "/e-2/diff", user: "bob", accept: asTable}).want(t, ok)
	if text := strings.Join(table.warnings, " "); !strings.Contains(text, "left out, as you cannot get them: 1") {
		t.Errorf("bob is not told that something is left out: %q", text)
	}

	// Without an answer from the authorizer, nothing is allowed.
	s.rules.set("", errors.New("the authorizer is away"))
	for _, path := range []string{revisions + "/e-2/diff", manifests + "/e-1:Secret:default:" + hidden} {
		s.do(call{method: http.MethodGet, path: path}).want(t, http.StatusInternalServerError)
	}
}
