// Package plugintest serves recorded answers of a cluster to commands, for tests without a cluster.
package plugintest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

type object = map[string]any

// Server answers with files of a folder.
type Server struct {
	*httptest.Server
	t   testing.TB
	dir string
	// Events are sent to watchers of revisions.
	Events chan any
	// Version is the version of the simulated Penstock; empty sends no version.
	Version string

	mu       sync.Mutex
	requests []string
}

// New serves a folder until the test ends. revisions.json and plans.json are lists. Every other
// file is one whole answer. Its name depends on the request: diff-argocd-2.json, pods.json.
func New(t testing.TB, dir string) *Server {
	t.Helper()
	s := &Server{t: t, dir: dir, Events: make(chan any)}
	mux := http.NewServeMux()
	const olm, hco = "GET /apis/olm.operatorframework.io/v1alpha1/", "GET /apis/hco.kubevirt.io/v1alpha1/"
	mux.HandleFunc(olm+"clusterextensionrevisions", s.revisions)
	mux.HandleFunc(olm+"clusterextensionrevisions/{name}/{subresource}", func(w http.ResponseWriter, r *http.Request) {
		s.file(w, r.PathValue("subresource")+"-"+r.PathValue("name"))
	})
	mux.HandleFunc("GET /apis/olm.operatorframework.io/v1/clusterextensions", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" { // these objects do not change
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		s.send(w, object{"kind": "ClusterExtensionList", "apiVersion": "olm.operatorframework.io/v1", "metadata": object{}, "items": s.extensions()})
	})
	mux.HandleFunc("GET /apis/olm.operatorframework.io/v1/clusterextensions/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.file(w, "clusterextension-"+r.PathValue("name"))
	})
	mux.HandleFunc(olm+"revisiondiffs/{name}", func(w http.ResponseWriter, r *http.Request) { s.file(w, "diff-"+r.PathValue("name")) })
	mux.HandleFunc(olm+"revisionhistories/{name}", func(w http.ResponseWriter, r *http.Request) { s.file(w, "history-"+r.PathValue("name")) })
	mux.HandleFunc(olm+"upgradereadinesses/{name}", func(w http.ResponseWriter, r *http.Request) { s.file(w, "readiness-"+r.PathValue("name")) })
	mux.HandleFunc(hco+"configurationplans", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" { // plans do not change
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		list := s.read("plans")
		list["kind"], list["apiVersion"] = "ConfigurationPlanList", "hco.kubevirt.io/v1alpha1"
		s.send(w, list)
	})
	mux.HandleFunc(hco+"configurationplans/{name}", func(w http.ResponseWriter, r *http.Request) { s.one(w, "plans", r.PathValue("name")) })
	mux.HandleFunc(hco+"configurationplans/{name}/{subresource}", func(w http.ResponseWriter, r *http.Request) {
		s.file(w, "plan"+r.PathValue("subresource")+"-"+r.PathValue("name"))
	})
	mux.HandleFunc("GET /apis/catalog.penstock.dev/v1alpha1/catalogpackages/{name}/upgrades", func(w http.ResponseWriter, r *http.Request) { s.file(w, "upgrades-"+r.PathValue("name")) })
	mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", func(w http.ResponseWriter, _ *http.Request) { s.file(w, "pods") })
	mux.HandleFunc("GET /apis/apps/v1/namespaces/{namespace}/replicasets", func(w http.ResponseWriter, _ *http.Request) { s.file(w, "replicasets") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, http.StatusNotFound, r.Method+" "+r.URL.Path)
	})
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.String())
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if s.Version != "" {
			w.Header().Set(v1alpha1.VersionHeader, s.Version)
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// Close ends the watches, and then the server.
func (s *Server) Close() {
	s.CloseClientConnections()
	s.Server.Close()
}

// Kubeconfig writes a kubeconfig for the server, and returns its path.
func (s *Server) Kubeconfig() string {
	path := filepath.Join(s.t.TempDir(), "kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: x, cluster: {server: %q}}], contexts: [{name: x, context: {cluster: x, user: ""}}]}`, s.URL)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Requests returns the sent requests, as "GET /path?query".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// revisions lists and watches the selected revisions.
func (s *Server) revisions(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-s.Events:
				_ = json.NewEncoder(w).Encode(object{"type": "MODIFIED", "object": event})
				w.(http.Flusher).Flush()
			}
		}
	}
	list := s.read("revisions")
	list["kind"], list["apiVersion"] = "ClusterExtensionRevisionList", v1alpha1.SchemeGroupVersion.String()
	var kept []any
	for _, item := range list["items"].([]any) {
		if selected(item.(object), r.URL.Query().Get("labelSelector"), r.URL.Query().Get("fieldSelector")) {
			kept = append(kept, item)
		}
	}
	list["items"] = kept
	s.send(w, list)
}

// Revision returns a copy of a recorded revision, to change and send as an event.
func (s *Server) Revision(name string) *v1alpha1.ClusterExtensionRevision {
	for _, item := range s.read("revisions")["items"].([]any) {
		if item.(object)["metadata"].(object)["name"] != name {
			continue
		}
		raw, err := json.Marshal(item)
		revision := &v1alpha1.ClusterExtensionRevision{}
		if err == nil {
			err = json.Unmarshal(raw, revision)
		}
		if err != nil {
			s.t.Fatal(err)
		}
		return revision
	}
	s.t.Fatalf("no revision %s was recorded", name)
	return nil
}

// selected is true for an object that matches the selectors of the plugin: extension, and lifecycle
// state.
func selected(item object, labels, fields string) bool {
	if state, not := strings.CutPrefix(fields, v1alpha1.LifecycleStateField+"!="); not && item["spec"].(object)["lifecycleState"] == state {
		return false
	}
	if labels == "" {
		return true
	}
	chain, _ := item["metadata"].(object)["labels"].(object)[v1alpha1.ChainLabel].(string)
	for _, wanted := range regexp.MustCompile(`[^=( ,)]+`).FindAllString(labels, -1) {
		if wanted == chain {
			return true
		}
	}
	return false
}

func (s *Server) one(w http.ResponseWriter, list, name string) {
	for _, item := range s.read(list)["items"].([]any) {
		if item.(object)["metadata"].(object)["name"] == name {
			s.send(w, item)
			return
		}
	}
	s.refuse(w, http.StatusNotFound, name)
}

func (s *Server) read(name string) object {
	raw, err := os.ReadFile(filepath.Join(s.dir, name+".json"))
	out := object{}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		s.t.Errorf("reading what was recorded: %v", err)
	}
	return out
}

func (s *Server) extensions() []any {
	files, err := filepath.Glob(filepath.Join(s.dir, "clusterextension-*.json"))
	if err != nil {
		s.t.Errorf("looking for what was recorded: %v", err)
	}
	all := []any{}
	for _, file := range files {
		all = append(all, s.read(strings.TrimSuffix(filepath.Base(file), ".json")))
	}
	return all
}

func (s *Server) file(w http.ResponseWriter, name string) {
	raw, err := os.ReadFile(filepath.Join(s.dir, name+".json"))
	if err != nil {
		s.refuse(w, http.StatusNotFound, name)
		return
	}
	_, _ = w.Write(raw)
}

func (s *Server) send(w http.ResponseWriter, answer any) { _ = json.NewEncoder(w).Encode(answer) }

func (s *Server) refuse(w http.ResponseWriter, code int, what string) {
	w.WriteHeader(code)
	s.send(w, object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": "NotFound", "message": what + " not found", "details": object{"name": what}})
}
