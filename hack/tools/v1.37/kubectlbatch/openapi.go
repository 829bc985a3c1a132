package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// onlyPatches shortens OpenAPI documents to what `kubectl create` reads of them: which
// parameters a patch of each kind has. It asks whether fieldValidation is one of them, and to
// parse the whole document of a group takes three quarters of the time of the command.
type onlyPatches struct{ next http.RoundTripper }

// document is the reduced form of an OpenAPI document.
type document struct {
	OpenAPI    string          `json:"openapi"`
	Info       json.RawMessage `json:"info,omitempty"`
	Paths      map[string]path `json:"paths"`
	Components struct {
		Parameters json.RawMessage `json:"parameters,omitempty"`
	} `json:"components"`
}

type path struct {
	Patch *struct {
		Parameters json.RawMessage `json:"parameters,omitempty"`
		Kind       json.RawMessage `json:"x-kubernetes-group-version-kind,omitempty"`
	} `json:"patch,omitempty"`
}

func (o onlyPatches) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK || !strings.HasPrefix(request.URL.Path, "/openapi/v3/") {
		return response, err
	}
	whole, err := io.ReadAll(response.Body)
	_ = response.Body.Close() // all of it was read, or the error is returned
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", request.URL, err)
	}
	short, err := shorten(whole)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", request.URL, err)
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(short)), int64(len(short))
	response.Header.Del("Content-Length")
	return response, nil
}

// shorten returns the document without everything but patches.
func shorten(whole []byte) ([]byte, error) {
	var d document
	if err := json.Unmarshal(whole, &d); err != nil {
		return nil, err
	}
	for name, p := range d.Paths {
		if p.Patch == nil {
			delete(d.Paths, name)
		}
	}
	return json.Marshal(d)
}
