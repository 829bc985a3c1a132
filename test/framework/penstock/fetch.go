package penstock

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// Fetch reads a path, such as metrics or a profile, directly from the process and not through the
// host. config has the user's credentials.
func (s *Server) Fetch(t testing.TB, config *rest.Config, path string) string {
	t.Helper()
	content, code, err := Get(t.Context(), s.Direct(config), path)
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("%d: %s", code, content)
	}
	if err != nil {
		t.Fatalf("penstock: reading %s: %v", path, err)
	}
	return content
}

// Direct returns a configuration of the same user that connects to the process instead of the host.
func (s *Server) Direct(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", s.Port())
	// The certificate is valid for the Service's name only.
	config.Insecure, config.CAFile, config.CAData = true, "", nil
	return config
}

// Get requests a path from a server once. It returns any answer, also an HTTP error. err is set
// only without an answer.
func Get(ctx context.Context, config *rest.Config, path string) (content string, code int, err error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", 0, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return "", 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), response.StatusCode, err
}
