package etcd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

// segmentBytes is the size of the files of the write-ahead log in a child process. etcd allocates
// one segment in use and one ahead, and ends when the volume has no room for the next. Its default
// of 64 MB would be a large part of a small volume.
const segmentBytes = 16 << 20

// order is the parent's first and only JSON message on the child's standard input. The end of the
// input means that the parent has ended.
type order struct {
	DataDir    string
	QuotaBytes int64
}

// stopOrder is the line that makes a child stop in good order.
const stopOrder = "stop"

type line struct {
	// Ready is written once, when etcd answers.
	Ready bool   `json:"ready,omitempty"`
	Entry *entry `json:"entry,omitempty"`
}

// ServeChild runs an etcd for the parent process at the other ends of in and out (see Process), and
// returns the exit code. It calls running when etcd answers, with a context that ends with etcd.
//
// etcd ends its process when a disk refuses a write. With a damaged or missing file, bbolt panics
// or the kernel kills the process. A child process confines these failures.
func ServeChild(in io.Reader, out io.Writer, running func(context.Context)) int {
	input := bufio.NewReader(in)
	text, err := input.ReadBytes('\n')
	var config order
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "reading what to serve: %s\n", err)
		return 2
	}
	// No other goroutine runs in this process yet.
	wal.SegmentSizeBytes = segmentBytes

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		if text, err := input.ReadString('\n'); err != nil || text != stopOrder+"\n" {
			// The parent has ended. A new parent may be waiting for the files.
			os.Exit(1)
		}
		cancel()
	}()
	send := sender(out)
	server, err := Start(ctx, Config{DataDir: config.DataDir, QuotaBytes: config.QuotaBytes, locked: true, write: func(e entry) { send(line{Entry: &e}) }})
	if err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return 1
	}
	defer server.Close()
	send(line{Ready: true})
	go running(ctx)
	select {
	case <-ctx.Done():
		return 0
	case err := <-server.Failed():
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
}

func sender(out io.Writer) func(line) {
	var mu sync.Mutex
	encoder := json.NewEncoder(out)
	return func(l line) {
		mu.Lock()
		defer mu.Unlock()
		err := encoder.Encode(l)
		var unsupported *json.UnsupportedTypeError
		if errors.As(err, &unsupported) && l.Entry != nil {
			// The fields are not valid JSON.
			l.Entry.Fields = map[string]any{"fields": fmt.Sprint(l.Entry.Fields)}
			// An error cannot be reported: this pipe is the only way to the parent.
			_ = encoder.Encode(l)
		}
	}
}
