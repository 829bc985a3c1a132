package kubeconfig

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// there starts a server that answers with its name, the request's credentials and path, and returns its
// configuration. A request of /watch does not end.
func there(t *testing.T, name, token string) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%s %s %s %s\n", name, r.Header.Get("Authorization"), r.Header.Get("User-Agent"), r.URL.Path)
		if strings.HasSuffix(r.URL.Path, "/watch") {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	config := &rest.Config{Host: server.URL + "/" + name, BearerToken: token}
	config.CAData = certificate(server)
	return config
}

// TestLink: clients that were created once reach the link's present cluster with its credentials. A
// change of the cluster closes open connections.
func TestLink(t *testing.T) {
	link := NewLink()
	config := link.Config()
	config.UserAgent = "me"
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (string, error) {
		response, err := client.Get(config.Host + path)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		raw, err := io.ReadAll(response.Body)
		return string(raw), err
	}
	if _, err := get("/api"); !errors.Is(err, errNowhere) {
		t.Errorf("a link that leads nowhere: %v", err)
	}
	if err := link.Lead(there(t, "one", "first")); err != nil {
		t.Fatal(err)
	}
	if got, err := get("/api"); err != nil || got != "one Bearer first me /one/api\n" {
		t.Errorf("got %q, error %v", got, err)
	}
	watch, err := client.Get(config.Host + "/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Body.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(watch.Body)
		ended <- err
	}()
	if err := link.Lead(there(t, "two", "second")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the watch goes on at the old place")
	}
	if got, err := get("/api"); err != nil || got != "two Bearer second me /two/api\n" {
		t.Errorf("got %q, error %v", got, err)
	}
	why := errors.New("it is another one")
	link.Lose(why)
	if _, err := get("/api"); !errors.Is(err, why) {
		t.Errorf("a link that was lost: %v", err)
	}
}

// TestHostile: an endless answer takes limited memory, and a redirect reaches no other server.
func TestHostile(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect leads to another server") }))
	t.Cleanup(elsewhere.Close)
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, elsewhere.URL+"/secret", http.StatusFound)
			return
		}
		if r.URL.Path == "/secret" {
			http.Error(w, "not here", http.StatusTeapot)
			return
		}
		for piece := make([]byte, 1<<20); sent.Load() < 1<<30; {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	link := NewLink()
	if err := link.Lead(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: link.Config().Host, Transport: link, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Get().AbsPath("/large").DoRaw(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("an answer of 1 GiB: %v", err)
	}
	if sent := sent.Load(); sent > 2*mostAnswer {
		t.Errorf("%d MiB were read", sent>>20)
	}
	var status apierrors.APIStatus
	if err := client.Get().AbsPath("/redirect").Do(t.Context()).Error(); !errors.As(err, &status) || status.Status().Code != http.StatusTeapot {
		t.Errorf("a redirect: %v", err)
	}
}

// TestHostileWatch: a watch may have many events, and an event that never ends takes limited
// memory.
func TestHostileWatch(t *testing.T) {
	const count = 17
	large := fmt.Sprintf(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"text":"\"%s"}}}`+"\n", strings.Repeat("{[", 1<<19))
	for name, begin := range map[string]string{"blanks": "", "text": `{"type":"ADDED","object":{"kind":"`} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for range count {
					_, _ = io.WriteString(w, large)
				}
				_, _ = io.WriteString(w, begin)
				for piece := []byte(strings.Repeat(" ", 1<<18)); sent.Load() < 1<<30; {
					n, err := w.Write(piece)
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			}))
			t.Cleanup(server.Close)
			link := NewLink()
			if err := link.Lead(&rest.Config{Host: server.URL}); err != nil {
				t.Fatal(err)
			}
			client, err := rest.UnversionedRESTClientFor(&rest.Config{
				Host: link.Config().Host, Transport: link, ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
			})
			if err != nil {
				t.Fatal(err)
			}
			watch, err := client.Get().AbsPath("/many").Param("watch", "true").Watch(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(watch.Stop)
			added, last := 0, ""
			for event := range watch.ResultChan() {
				if last = fmt.Sprint(event.Object); event.Type == "ADDED" {
					added++
				}
			}
			if added != count || !strings.Contains(last, "an event of more than 16 MiB") {
				t.Errorf("%d events, want %d, and the last one is %.300s", added, count, last)
			}
			if sent := sent.Load(); sent > 4*mostEvent {
				t.Errorf("%d MiB of the last event were read", sent>>20)
			}
		})
	}
}

func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
