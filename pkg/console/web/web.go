// Package web has the files of the console: modules without a build step, stripped of comments. It
// reads them once, and serves them from memory, compressed where that saves bytes.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed index.html style.css icon.svg app/*.js vendor/*.js vendor/LICENSE.* vendor/VERSIONS
var files embed.FS

// Files serves the files of the console.
type Files struct{ all map[string]file }

type file struct {
	kind, etag string
	plain, zip []byte
}

// places returns the first path segment of each screen. A link may name a screen in its path
// instead of its fragment: the page then opens that screen.
func places() []string {
	return []string{"diff", "fleet", "me", "object", "package", "packages", "plan", "pod", "profiles", "ready", "search", "timeline", "x"}
}

// preloads marks the place in the page for the list of its modules. The list lets a browser fetch all
// modules at once.
const preloads = "<!-- modules -->"

// signIn marks the place in the page for the identity provider.
const signIn = "<!-- sign-in -->"

// Provider is an OpenID Connect provider for signing in.
type Provider struct {
	// Issuer is the URL of the provider; empty for no provider.
	Issuer string
	// ClientID is the ID of the console at the provider, as a public client.
	ClientID string
	// Scopes are requested in addition to openid.
	Scopes []string
}

func (p Provider) tags() string {
	if p.Issuer == "" {
		return ""
	}
	var tags strings.Builder
	for _, tag := range [][2]string{{"issuer", p.Issuer}, {"client-id", p.ClientID}, {"scope", strings.Join(append([]string{"openid"}, p.Scopes...), " ")}} {
		fmt.Fprintf(&tags, "<meta name=\"oidc-%s\" content=\"%s\">\n", tag[0], html.EscapeString(tag[1]))
	}
	return tags.String()
}

// New reads the files.
func New(provider Provider) (*Files, error) {
	f := &Files{all: map[string]file{}}
	var links strings.Builder
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "app/") {
			content = withoutComments(content)
		}
		if path.Ext(name) == ".js" {
			fmt.Fprintf(&links, "<link rel=\"modulepreload\" href=\"/%s\">\n", name)
		}
		f.all["/"+name] = newFile(name, content)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the files of the console: %w", err)
	}
	page := bytes.Replace(f.all["/index.html"].plain, []byte(preloads), []byte(links.String()), 1)
	page = bytes.Replace(page, []byte(signIn), []byte(provider.tags()), 1)
	f.all["/"] = newFile("index.html", page)
	return f, nil
}

// comments matches the comments of the modules, including types: a whole line, or text between
// comment marks. Strings of the modules contain neither.
var comments = regexp.MustCompile(`(?m)^[ \t]*//.*$|/\*(?s:.*?)\*/`)

// withoutComments returns a module for browsers. Comments are a third of it. Lines keep their
// numbers.
func withoutComments(module []byte) []byte {
	return comments.ReplaceAllFunc(module, func(found []byte) []byte { return bytes.Repeat([]byte("\n"), bytes.Count(found, []byte("\n"))) })
}

func newFile(name string, content []byte) file {
	kinds := map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml"}
	kind := kinds[path.Ext(name)]
	if kind == "" {
		kind = mime.TypeByExtension(".txt")
	}
	sum := sha256.Sum256(content)
	var zipped bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&zipped, gzip.BestCompression) // the level is valid
	_, _ = writer.Write(content)                                    // into memory
	_ = writer.Close()
	return file{kind: kind, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, plain: content, zip: zipped.Bytes()}
}

// ServeHTTP implements http.Handler. A browser checks each time whether a file has changed: another
// version of the program may have the same address.
func (f *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	found, there := f.all[r.URL.Path]
	if first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); !there && slices.Contains(places(), first) {
		found, there = f.all["/"], true
	}
	if !there {
		http.Error(w, "the console has no such file", http.StatusNotFound)
		return
	}
	header := w.Header()
	header.Set("Content-Type", found.kind)
	header.Set("ETag", found.etag)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == found.etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	content := found.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		header.Set("Content-Encoding", "gzip")
		content = found.zip
	}
	header.Set("Content-Length", fmt.Sprint(len(content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(content) // a disconnected client does not read the rest
	}
}
