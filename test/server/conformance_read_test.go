//go:build integration

package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	tableAccept    = "application/json;as=Table;v=v1;g=meta.k8s.io"
	metadataAccept = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	metadataList   = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

func readManners() map[string]manner {
	return map[string]manner{
		"Discovery": {do: discovered},
		"Paging":    {do: paging},
		"Versions":  {do: versions},
		"Labels":    {do: labelSelectors},
		"Fields":    {do: fieldSelectors, deviations: unsupportedField("unsupported")},
		"Shapes":    {do: shapes, deviations: []deviation{noProtobuf("no such table"), noProtobuf("none of a type")}},
	}
}

// unsupportedField are deviations, because our errors list the supported fields.
func unsupportedField(what string) []deviation {
	const host = `HTTP400 Failure BadRequest "spec.nonsense" is not a known field selector: only "metadata.name", "metadata.namespace"`
	const ours = `HTTP400 Failure BadRequest field label not supported: "spec.nonsense", supported are metadata.name, `
	const why = "there are more fields to select by"
	return []deviation{
		{of: "ClusterExtensionRevision", what: what, host: host, ours: ours + "spec.revision and spec.lifecycleState", why: why},
		{of: "ConfigurationPlan", what: what, host: host, ours: ours + "spec.profile and status.phase", why: why},
	}
}

// noProtobuf is a deviation, because our error lists the media types.
func noProtobuf(what string) deviation {
	return deviation{
		what: what, host: "…application/json, application/yaml, application/vnd.kubernetes.protobuf…", ours: "…application/json, application/yaml…",
		why: "our types have no protobuf form, as custom resources have none",
	}
}

// list lists the objects of the scenario.
func (s *subject) list(query ...string) reply {
	s.t.Helper()
	return s.ask(call{method: http.MethodGet, query: strings.Join(append(query, "labelSelector=scenario%3D"+s.base), "&")})
}

// several creates objects that list finds.
func (s *subject) several(letters string) {
	s.t.Helper()
	for _, letter := range strings.Split(letters, " ") {
		s.labelled(letter, "scenario="+s.base, "letter="+letter)
	}
}

// discovered tests the resources in discovery and their verbs.
func discovered(s *subject) {
	var resources struct {
		Resources []struct {
			Name, SingularName, Kind, StorageVersionHash string
			Verbs                                        []string
		}
	}
	raw := s.MustKubectl("get", "--raw", "/apis/"+s.resource.GroupVersion().String())
	if err := json.Unmarshal([]byte(raw), &resources); err != nil {
		s.t.Fatal(err)
	}
	for _, r := range resources.Resources {
		switch r.Name {
		case s.resource.Resource:
			s.note("type", "%s %v singular %t, storage version hash %t", r.Kind, r.Verbs, r.SingularName == s.singular, r.StorageVersionHash != "")
		case s.resource.Resource + "/status":
			s.note("status", "%s %v", r.Kind, r.Verbs)
		}
	}
}

// paging: all pages show the same version.
func paging(s *subject) {
	s.several("a b c d e")
	first := s.list("limit=2")
	token := fmt.Sprint(at(first.body, "metadata", "continue"))
	s.note("first page", "%s, remaining %v, goes on %t", s.letters(first), at(first.body, "metadata", "remainingItemCount"), token != "")
	s.remove("c")
	s.labelled("f", "scenario="+s.base)
	s.turn("d", 2)

	second := s.list("limit=2", "continue="+url.QueryEscape(token))
	s.note("second page", "%s, remaining %v, same version %t", s.letters(second), at(second.body, "metadata", "remainingItemCount"), second.version() == first.version())
	items, _ := second.body["items"].([]any)
	old := items[len(items)-1].(map[string]any)
	s.note("second page's d is the old one", "%t", describe(at(old, s.knob...)) == describe(s.setting(1)))
	last := s.list("limit=2", "continue="+url.QueryEscape(fmt.Sprint(at(second.body, "metadata", "continue"))))
	s.note("last page", "%s, same version %t, goes on %v", s.letters(last), last.version() == first.version(), at(last.body, "metadata", "continue"))
	s.note("all at once", "%s", s.letters(s.list()))

	s.note("version with continue", "%s", s.list("limit=2", "resourceVersion="+first.version(), "continue="+url.QueryEscape(token)))
	s.note("nonsense token", "%s", s.list("limit=2", "continue=nonsense"))
	s.note("nonsense limit", "%s", s.list("limit=many"))
	// A token must not lead to another path.
	s.note("token of another path", "%s", s.list("limit=2", "continue="+tokenOf(1, "../../")))
}

// tokenOf returns a continue token as the store makes it.
func tokenOf(version int, start string) string {
	raw, err := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": version, "start": start})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// versions tests the resourceVersions that a list accepts.
func versions(s *subject) {
	s.several("a")
	before := s.list().version()
	s.several("b")
	after := s.get("b").version()
	s.note("exact", "%s", s.letters(s.list("resourceVersionMatch=Exact", "resourceVersion="+before)))
	s.note("exact, its version", "%t", s.list("resourceVersionMatch=Exact", "resourceVersion="+before).version() == before)
	s.note("not older", "%s", s.letters(s.list("resourceVersionMatch=NotOlderThan", "resourceVersion="+after)))
	s.note("at least", "%s", s.letters(s.list("resourceVersion="+after)))
	s.note("any", "%t", s.list("resourceVersion=0").code == http.StatusOK)
	s.note("match without version", "%s", s.list("resourceVersionMatch=Exact"))
	s.note("exact zero", "%s", s.list("resourceVersionMatch=Exact", "resourceVersion=0"))
	s.note("nonsense match", "%s", s.list("resourceVersionMatch=Nonsense", "resourceVersion=1"))
	s.note("nonsense version", "%s", s.list("resourceVersion=nonsense"))
	s.note("future", "%s", s.list("resourceVersion=99999999999"))
	s.answered("get at least", call{method: http.MethodGet, name: s.name("b"), query: "resourceVersion=" + after})
}

func labelSelectors(s *subject) {
	s.several("a b c")
	for _, selector := range []string{"letter=a", "letter!=a", "letter in (a,c)", "letter notin (a,c)", "letter", "!letter", "letter=a,scenario=none"} {
		a := s.ask(call{method: http.MethodGet, query: "labelSelector=" + url.QueryEscape("scenario="+s.base+","+selector)})
		s.note(selector, "%s", s.letters(a))
	}
	s.answered("nonsense", call{method: http.MethodGet, query: "labelSelector=" + url.QueryEscape("a in b")})
	s.answered("invalid", call{method: http.MethodGet, query: "labelSelector=" + url.QueryEscape("a=b c")})
}

func fieldSelectors(s *subject) {
	s.several("a b")
	name := "fieldSelector=" + url.QueryEscape("metadata.name="+s.name("b"))
	s.note("name", "%s", s.letters(s.list(name)))
	s.note("not name", "%s", s.letters(s.list(strings.Replace(name, "%3D", "%21%3D", 1))))
	s.answered("unsupported", call{method: http.MethodGet, query: "fieldSelector=spec.nonsense%3D1"})
	s.answered("nonsense", call{method: http.MethodGet, query: "fieldSelector=nonsense"})
}

// shapes tests metadata only and tables, for one object and for a list.
func shapes(s *subject) {
	s.several("a b")
	for what, accept := range map[string]string{"metadata": metadataAccept, "table": tableAccept} {
		a := s.must(call{method: http.MethodGet, name: s.name("a"), accept: accept})
		s.note("one, "+what, "%v %v, spec %v, %v", a.body["kind"], a.body["apiVersion"], a.body["spec"], columns(a.body))
	}
	partial := s.must(call{method: http.MethodGet, accept: metadataList, query: "labelSelector=scenario%3D" + s.base})
	s.note("many, metadata", "%v: %s", partial.body["kind"], s.letters(partial))
	first := partial.body["items"].([]any)[0].(map[string]any)
	s.note("many, metadata, spec", "%v, labels %v", first["spec"], at(first, "metadata", "labels", "letter"))
	for _, include := range []string{"", "None", "Metadata", "Object"} {
		a := s.must(call{method: http.MethodGet, accept: tableAccept, query: "limit=1&labelSelector=scenario%3D" + s.base + "&includeObject=" + include})
		rows, _ := a.body["rows"].([]any)
		row, _ := rows[0].(map[string]any)
		object, _ := row["object"].(map[string]any)
		s.note("rows with objects "+include, "%d, cells as columns %t, object %v, metadata %t, spec %t, goes on %t", len(rows),
			len(row["cells"].([]any)) == len(a.body["columnDefinitions"].([]any)), object["kind"], object["metadata"] != nil, object["spec"] != nil,
			at(a.body, "metadata", "continue") != "")
	}
	s.answered("nonsense include", call{method: http.MethodGet, accept: tableAccept, query: "includeObject=Nonsense"})
	s.answered("none of a type", call{method: http.MethodGet, accept: "application/json;as=Nonsense;v=v1;g=meta.k8s.io"})
	s.answered("no such table", call{method: http.MethodGet, accept: "application/json;as=Table;v=v2;g=meta.k8s.io"})
	s.note("first of several", "%v", s.must(call{method: http.MethodGet, name: s.name("a"), accept: "application/json;as=Table;v=v9;g=meta.k8s.io," + tableAccept + ",application/json"}).body["kind"])
	yaml := s.must(call{method: http.MethodGet, name: s.name("a"), accept: "application/yaml"})
	s.note("yaml", "%t", strings.Contains(yaml.raw, "\nkind: "+s.kind+"\n"))
}

// columns returns the first and the last column: name and age, which every type has.
func columns(table map[string]any) string {
	definitions, _ := table["columnDefinitions"].([]any)
	if len(definitions) == 0 {
		return "no columns"
	}
	first, _ := definitions[0].(map[string]any)
	return fmt.Sprintf("%v of format %v", first["name"], first["format"])
}

// expired: a compacted version gets 410 Expired, with a token to continue.
func (w servedHost) expired(s *subject) {
	s.several("a b c d")
	first := s.list("limit=1")
	s.turn("a", 2)
	for _, socket := range []string{filepath.Join(w.Plane().Dir(), "etcd.sock"), filepath.Join(w.dir, "run", "etcd.sock")} {
		compact(s, socket)
	}
	s.note("current", "%s", s.letters(s.list()))
	start := decoded(s, fmt.Sprint(at(first.body, "metadata", "continue")))
	late := s.list("limit=1", "continue="+tokenOf(1, start))
	s.note("continue", "%s", late)
	token := fmt.Sprint(at(late.body, "metadata", "continue"))
	s.note("go on inconsistently", "%s", s.letters(s.list("continue="+url.QueryEscape(token))))
	s.note("exact", "%s", s.list("resourceVersionMatch=Exact", "resourceVersion=1"))
}

// decoded returns the start key of a continue token.
func decoded(s *subject, token string) string {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	var content struct{ Start string }
	if err == nil {
		err = json.Unmarshal(raw, &content)
	}
	if err != nil {
		s.t.Fatalf("the token %q: %v", token, err)
	}
	return content.Start
}

// compact removes the history of an etcd.
func compact(s *subject, socket string) {
	s.t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + socket}, DialTimeout: 10 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	defer client.Close()
	now, err := client.Get(s.t.Context(), "nothing")
	if err == nil {
		_, err = client.Compact(s.t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	}
	// The run of the other type may have compacted already.
	if err != nil && !strings.Contains(err.Error(), "compacted") {
		s.t.Fatal(err)
	}
}
