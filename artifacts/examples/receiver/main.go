// Command receiver is an example receiver of Penstock's notifications. It checks the signature and
// forwards each notification to Alertmanager, or to the incoming webhook of a chat.
//
//	receiver alertmanager http://alertmanager.monitoring:9093
//	receiver chat https://chat.example.com/hooks/…
//
// It listens on :8443 with tls.crt and tls.key. PENSTOCK_KEY has the key of the Secret.
package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// event is a CloudEvent of Penstock. A summary has many notifications in data.notifications.
type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Kind, Name, UID, Reason, Summary, Look string
		Notifications                          []event
	} `json:"data"`
}

func main() {
	if len(os.Args) != 3 || os.Getenv("PENSTOCK_KEY") == "" {
		log.Fatal("usage: PENSTOCK_KEY=… receiver alertmanager|chat URL")
	}
	server := &http.Server{Addr: ":8443", ReadTimeout: 10 * time.Second, Handler: handler(os.Args[1], os.Args[2], []byte(os.Getenv("PENSTOCK_KEY")))}
	log.Fatal(server.ListenAndServeTLS("tls.crt", "tls.key"))
}

// handler answers 204 after it forwarded the notification. Until then Penstock repeats the request.
func handler(kind, to string, key []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil || !signed(r.Header.Get("Penstock-Signature"), body, key, time.Now()) {
			http.Error(w, "not signed with the key", http.StatusUnauthorized)
			return
		}
		var got event
		if err := json.Unmarshal(body, &got); err != nil {
			http.Error(w, "no CloudEvent", http.StatusBadRequest)
			return
		}
		if err := pass(kind, to, got); err != nil {
			log.Print(err)
			http.Error(w, "not passed on", http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// signed checks the signature, and that it is at most five minutes old.
func signed(header string, body, key []byte, now time.Time) bool {
	at, signature, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s", at, body)
	return hmac.Equal([]byte(signature), []byte(hex.EncodeToString(mac.Sum(nil))))
}

// pass forwards an event. Alertmanager merges equal alerts, so a repeated event creates only one
// alert.
func pass(kind, to string, got event) error {
	if kind == "chat" {
		return post(to, map[string]string{"text": strings.TrimSpace(got.Data.Summary + "\n" + got.Data.Look)})
	}
	alerts := []any{}
	for _, one := range append(got.Data.Notifications, got) {
		name := strings.TrimPrefix(one.Type, "dev.penstock.")
		if name == "Connected" || name == "Completed" {
			continue // no user needs to act
		}
		alerts = append(alerts, map[string]any{
			"labels":      map[string]string{"alertname": "Penstock" + name, "kind": one.Data.Kind, "name": one.Data.Name, "reason": one.Data.Reason, "severity": "info"},
			"annotations": map[string]string{"summary": one.Data.Summary, "description": one.Data.Look},
			"endsAt":      time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		})
	}
	if len(alerts) == 0 {
		return nil
	}
	return post(strings.TrimSuffix(to, "/")+"/api/v2/alerts", alerts)
}

func post(to string, content any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: 5 * time.Second}
	response, err := client.Post(to, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("it answered %s", response.Status)
	}
	return nil
}
