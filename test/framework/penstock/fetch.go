package penstock

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"
)

// Fetch reads a path from the process itself, and not through the host: its metrics,
// or a profile. The config names who reads.
func (s *Server) Fetch(t testing.TB, config *rest.Config, path string) string {
	t.Helper()
	config = rest.CopyConfig(config)
	config.Host = fmt.Sprintf("https://127.0.0.1:%d", s.Port())
	// Its certificate is for the name of a Service.
	config.Insecure, config.CAFile, config.CAData = true, "", nil
	content, err := fetch(t.Context(), config, path)
	if err != nil {
		t.Fatalf("penstock: reading %s: %v", path, err)
	}
	return content
}

func fetch(ctx context.Context, config *rest.Config, path string) (string, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, content)
	}
	return string(content), err
}
