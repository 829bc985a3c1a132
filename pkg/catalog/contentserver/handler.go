package contentserver

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/catalog/content"
)

// Root is the path below which catalogs are served.
const Root = "/catalogs/"

// jsonLines is the media type of answers.
const jsonLines = "application/jsonl"

// maxCompressing limits the answers that are compressed at the same time. Each takes some hundred
// kilobytes. Further answers are sent uncompressed.
const maxCompressing = 16

// Served is the content that is served for a catalog.
type Served struct {
	Content *content.Content
	// Modified is the time of the last change of the content. It is equal on all replicas.
	Modified time.Time
}

// Find returns the served content of a catalog, or nil.
type Find func(name string) *Served

type handler struct {
	find        Find
	compressing chan struct{}
}

// NewHandler returns the HTTP handler.
func NewHandler(find Find) http.Handler {
	h := &handler{find: find, compressing: make(chan struct{}, maxCompressing)}
	mux := http.NewServeMux()
	mux.HandleFunc(Root+"{catalog}/api/v1/all", reading(h.all))
	mux.HandleFunc(Root+"{catalog}/api/v1/metas", reading(h.metas))
	return mux
}

func reading(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed)
			return
		}
		next(w, r)
	}
}

func fail(w http.ResponseWriter, status int) {
	http.Error(w, fmt.Sprintf("%d %s", status, http.StatusText(status)), status)
}

// catalog returns the requested catalog, or answers the request with an error.
func (h *handler) catalog(w http.ResponseWriter, r *http.Request) *Served {
	name := r.PathValue("catalog")
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		http.Error(w, "invalid catalog name: "+strings.Join(wrong, "; "), http.StatusBadRequest)
		return nil
	}
	found := h.find(name)
	if found == nil {
		fail(w, http.StatusNotFound)
	}
	return found
}

// all answers with all documents. If the client accepts gzip, it sends the stored compressed file.
func (h *handler) all(w http.ResponseWriter, r *http.Request) {
	found := h.catalog(w, r)
	if found == nil {
		return
	}
	w.Header().Set("Content-Type", jsonLines)
	w.Header().Add("Vary", "Accept-Encoding")
	from, tag := io.ReadSeeker(found.Content.All()), ""
	// A range refers to the plain content, which a client can assemble.
	if r.Header.Get("Range") == "" && takesGzip(r) {
		from, tag = found.Content.Compressed(), "-gzip"
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("ETag", entityTag(found, tag))
	http.ServeContent(w, r, "", found.Modified, from)
}

func (h *handler) metas(w http.ResponseWriter, r *http.Request) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest)
		return
	}
	for parameter := range query {
		if parameter != "schema" && parameter != "package" && parameter != "name" {
			fail(w, http.StatusBadRequest)
			return
		}
	}
	found := h.catalog(w, r)
	if found == nil {
		return
	}
	schema, pkg, name := query.Get("schema"), query.Get("package"), query.Get("name")
	if schema == "" && pkg == "" && name == "" {
		h.all(w, r)
		return
	}
	w.Header().Set("Content-Type", jsonLines)
	w.Header().Add("Vary", "Accept-Encoding")
	w.Header().Set("ETag", "W/"+entityTag(found, ""))
	if notModified(w, r, found.Modified) {
		return
	}
	selected, err := found.Content.Select(schema, pkg, name)
	if err != nil {
		w.Header().Del("ETag")
		fail(w, http.StatusInternalServerError)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	h.send(w, r, selected)
}

// send sends selected documents. An error means that the client has disconnected or was too slow.
func (h *handler) send(w http.ResponseWriter, r *http.Request, from io.Reader) {
	if !takesGzip(r) {
		_, _ = io.Copy(w, from)
		return
	}
	select {
	case h.compressing <- struct{}{}:
		defer func() { <-h.compressing }()
	default:
		_, _ = io.Copy(w, from)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	out, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return
	}
	if _, err := io.Copy(out, from); err == nil {
		_ = out.Close()
	}
}

// entityTag identifies a content. It is equal on all replicas, and after a restart.
func entityTag(served *Served, variant string) string {
	return `"` + served.Content.Digest() + variant + `"`
}

// notModified answers a conditional request as http.ServeContent does, which needs a seekable file.
func notModified(w http.ResponseWriter, r *http.Request, modified time.Time) bool {
	probe := &probe{ResponseWriter: w, status: http.StatusOK}
	conditional := r.Clone(r.Context())
	conditional.Method = http.MethodHead
	conditional.Header.Del("Range")
	http.ServeContent(probe, conditional, "", modified, strings.NewReader(""))
	w.Header().Del("Content-Length")
	w.Header().Del("Accept-Ranges")
	if probe.status == http.StatusOK {
		return false
	}
	w.WriteHeader(probe.status)
	return true
}

// probe records the status of an answer and discards its body.
type probe struct {
	http.ResponseWriter
	status int
}

func (p *probe) WriteHeader(status int)            { p.status = status }
func (p *probe) Write(content []byte) (int, error) { return len(content), nil }

func takesGzip(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(header, ",") {
			coding, weight, _ := strings.Cut(strings.TrimSpace(one), ";")
			if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				continue
			}
			weight = strings.TrimSpace(weight)
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
