package webhooks

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
)

// serveEmpty makes this program the webhook that does nothing. It is a separate process like
// Penstock, so that it has the same cost of waking up.
const serveEmpty = "PENSTOCK_BENCH_EMPTY_WEBHOOK"

// answer is the answer of all webhooks to a request that they ignore.
const answer = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"u","allowed":true}}`

type served struct {
	URL string `json:"url"`
	CA  []byte `json:"ca"`
}

func TestMain(m *testing.M) {
	if os.Getenv(serveEmpty) == "" {
		os.Exit(m.Run())
	}
	if err := empty(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// empty reads and admits reviews, with minimal work, until in ends.
func empty(in io.Reader, out io.Writer) error {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := json.NewEncoder(out).Encode(served{server.URL + "/", ca}); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, in)
	return err
}

func emptyWebhook(t *testing.T) (url string, ca []byte) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), serveEmpty+"=1")
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			t.Errorf("the empty webhook: %v", err)
		}
	})
	var where served
	if err := json.NewDecoder(out).Decode(&where); err != nil {
		t.Fatalf("the empty webhook does not say where it is: %v", err)
	}
	return where.URL, where.CA
}
