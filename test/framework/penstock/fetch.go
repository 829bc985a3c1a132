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

// Direct is a config of the same user that reaches the process itself, and not the host.
func (s *Server) Direct(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", s.Port())
	// Its certificate is for the name of a Service.
	config.Insecure, config.CAFile, config.CAData = true, "", nil
	return config
}

// Get asks a server for a path, once: any answer is one, and no answer is an error.
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
