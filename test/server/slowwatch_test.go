//go:build integration

package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/test/framework/poll"
)

const (
	slowWatches = 200
	// besideTime bounds a write and a read beside slow watches.
	besideTime = 5 * time.Second
	// watchMemory bounds the memory of all slow watches together. Each of them has a few events
	// that are not sent.
	watchMemory = 512 << 20
)

// slowWatches: watches whose client does not read are ended. They delay no other requests and take
// little memory.
func (d door) slowWatches() {
	d.MustKubectlInput(strings.Replace(revision("watched", 1), "revision: 1", "revision: 1\n  lifecycleState: Paused", 1), "create", "-f", "-")
	config := d.server.Direct(d.Config())
	config.NextProtos = []string{"http/1.1"}
	config.QPS = -1
	// With a small buffer, unread data soon fills the connection.
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if tcp, ok := conn.(*net.TCPConn); ok {
			err = tcp.SetReadBuffer(4 << 10)
		}
		return conn, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		d.t.Fatal(err)
	}
	grown := d.server.PeakMemory(d.t)
	ctx, cancel := context.WithCancel(d.t.Context())
	defer cancel()
	d.watchUnread(ctx, client, config.Host)

	worst := time.Duration(0)
	changes := 0
	for ended := 0; ended < slowWatches; changes++ {
		if changes == 200 {
			d.t.Fatalf("%d of %d unread watches were ended", ended, slowWatches)
		}
		start := time.Now()
		d.annotate("watched-1", changes)
		if got := d.MustKubectl("get", "cer", "watched-1", "-o", `jsonpath={.metadata.labels.change}`); got != strconv.Itoa(changes) {
			d.t.Fatalf("change %d was read as %q", changes, got)
		}
		worst = max(worst, time.Since(start))
		ended = d.terminated()
	}
	d.t.Logf("%d changes: worst write and read %s, %d MiB more", changes, worst, grown()>>20)
	if worst > besideTime {
		d.t.Errorf("a write and a read took %s, want %s at most", worst, besideTime)
	}
	if got := grown(); got > watchMemory {
		d.t.Errorf("the server took %d bytes more, want %d at most", got, watchMemory)
	}
	cancel()
	d.MustKubectl("delete", "cer", "watched-1", poll.TimeoutFlag)
}

// watchUnread starts the watches and reads only the headers of their answers.
func (d door) watchUnread(ctx context.Context, client *http.Client, host string) {
	d.t.Helper()
	var beginning sync.WaitGroup
	for range slowWatches {
		beginning.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+revisionsPath+"?watch=true", nil)
			if err != nil {
				d.t.Error(err)
				return
			}
			response, err := client.Do(request)
			if err != nil {
				d.t.Error(err)
				return
			}
			d.t.Cleanup(func() { _ = response.Body.Close() })
			if response.StatusCode != http.StatusOK {
				text, _ := io.ReadAll(response.Body)
				d.t.Errorf("a watch: %s: %s", response.Status, text)
			}
		})
	}
	beginning.Wait()
}

// annotate makes a large change to a revision.
func (d door) annotate(name string, change int) {
	d.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"labels":{"change":"%d"},"annotations":{"example.com/text":%q}}}`, change, strings.Repeat(fmt.Sprintf("%08d", change), 20_000))
	client, err := rest.HTTPClientFor(d.Config())
	if err != nil {
		d.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(d.t.Context(), http.MethodPatch, d.Config().Host+revisionsPath+"/"+name, strings.NewReader(patch))
	if err != nil {
		d.t.Fatal(err)
	}
	request.Header.Set("Content-Type", asMerge)
	response, err := client.Do(request)
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if text, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		d.t.Fatalf("change %d: %s %.300s (%v)", change, response.Status, text, err)
	}
}

// terminated returns how many watches of revisions the watch cache has ended because of unread
// events.
func (d door) terminated() int {
	d.t.Helper()
	for line := range strings.Lines(d.server.Fetch(d.t, d.Config(), "/metrics")) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(series, "apiserver_terminated_watchers_total{") && strings.Contains(series, `"clusterextensionrevisions"`) {
			count, err := strconv.Atoi(value)
			if err != nil {
				d.t.Fatal(err)
			}
			return count
		}
	}
	return 0
}
