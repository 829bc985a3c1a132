package etcd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/klog/v2/ktesting"
)

// The pages of the database go, all that was in them can be read as before, and a
// database that is written to and moves meanwhile loses nothing.
func TestGiveBack(t *testing.T) {
	const keys, size, rounds = 32, 256 << 10, 3
	log, ctx := ktesting.NewTestContext(t)
	s, err := Start(ctx, Config{DataDir: t.TempDir(), QuotaBytes: 256 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client := newClient(t, s)
	value := func(key, round int) string { return strings.Repeat(fmt.Sprintf("%04d %04d\n", key, round), size/10) }
	write := func(key, round int) {
		if _, err := client.Put(ctx, fmt.Sprintf("key-%d", key), value(key, round)); err != nil {
			t.Errorf("writing: %v", err)
		}
	}
	check := func(round int) {
		for key := range keys {
			want := value(key, 0)
			if key == 0 {
				want = value(key, round)
			}
			found, err := client.Get(ctx, fmt.Sprintf("key-%d", key))
			if err != nil || len(found.Kvs) != 1 || string(found.Kvs[0].Value) != want {
				t.Fatalf("round %d: key %d is not as it was written: %v", round, key, err)
			}
		}
	}
	for key := range keys {
		write(key, 0)
	}
	// A new file is mapped whole, as after a start.
	if _, err := client.Defragment(ctx, s.Endpoint()); err != nil {
		t.Fatal(err)
	}
	check(0)
	before := resident(t, s.database)
	if err := s.GiveBack(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t, s.database); before < keys*size || after > before/4 {
		t.Errorf("%d bytes of the database were in memory, and then %d", before, after)
	}
	check(0)

	for round := 1; round <= rounds; round++ {
		var others sync.WaitGroup
		others.Go(func() { write(0, round) })
		others.Go(func() { defragment(ctx, t, client, s) })
		for range 5 {
			if err := s.GiveBack(); err != nil {
				t.Error(err)
			}
		}
		others.Wait()
		check(round)
	}
}

func defragment(ctx context.Context, t *testing.T, client *clientv3.Client, s *Server) {
	if _, err := client.Defragment(ctx, s.Endpoint()); err != nil {
		t.Errorf("moving the database: %v", err)
	}
}

// Of an etcd that has ended there is nothing to give back.
func TestGiveBackAfterClose(t *testing.T) {
	log, ctx := ktesting.NewTestContext(t)
	s, err := Start(ctx, Config{DataDir: t.TempDir(), QuotaBytes: 64 << 20, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.GiveBack(); err != nil {
		t.Error(err)
	}
}

func TestMappingOf(t *testing.T) {
	cases := map[string]struct {
		reason, line string
		ok           bool
	}{
		"Database":  {"what bbolt maps", "7f0f18000000-7f1058000000 r--s 00000000 fe:00 10019590                   /data/my db", true},
		"Another":   {"another file", "7f0f18000000-7f1058000000 r--s 00000000 fe:00 10019590                   /data/my db 2", false},
		"Writable":  {"it is not clear what would become of what was written", "7f0f18000000-7f1058000000 rw-s 00000000 fe:00 10019590  /data/my db", false},
		"Private":   {"a copy that is ours", "7f0f18000000-7f1058000000 r--p 00000000 fe:00 10019590  /data/my db", false},
		"Anonymous": {"the heap", "c000000000-c000400000 rw-p 00000000 00:00 0 ", false},
		"Gone":      {"a file that was replaced", "7f0f18000000-7f1058000000 r--s 00000000 fe:00 10019590  /data/my db (deleted)", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			start, end, ok := mappingOf(tc.line, "/data/my db")
			if ok != tc.ok || ok && (start != 0x7f0f18000000 || end != 0x7f1058000000) {
				t.Errorf("%s: got %x to %x, %t", tc.reason, start, end, ok)
			}
		})
	}
}

// resident is how much of a mapped file is in the memory of this process, in bytes.
func resident(t *testing.T, path string) (bytes uint64) {
	t.Helper()
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skipf("this test reads /proc: %v", err)
	}
	defer file.Close()
	ours := false
	for lines := bufio.NewScanner(file); lines.Scan(); {
		switch words := strings.Fields(lines.Text()); {
		case strings.Contains(words[0], "-"):
			_, _, ours = mappingOf(lines.Text(), path)
		case ours && words[0] == "Rss:":
			kilobytes, err := strconv.ParseUint(words[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			bytes += kilobytes << 10
		}
	}
	return bytes
}
