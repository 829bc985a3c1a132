package port

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv("PORT_TEST_CHOOSES") != "" {
		chosen, err := Free()
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString(strconv.Itoa(chosen) + "\n")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	os.Exit(m.Run())
}

// TestFree: no port is returned twice, to this process or another. No port is in the kernel's range
// for outgoing connections.
func TestFree(t *testing.T) {
	seen := map[string]bool{}
	for range 3 {
		chosen, err := Free()
		if err != nil {
			t.Fatal(err)
		}
		seen[strconv.Itoa(chosen)] = true
	}
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "PORT_TEST_CHOOSES=1")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = other.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	seen[strings.TrimSpace(line)] = true
	if len(seen) != 4 {
		t.Fatalf("got ports %v, want four of them", seen)
	}
	if ports, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if lowest, _ := strconv.Atoi(strings.Fields(string(ports))[0]); lowest <= last {
			t.Errorf("the kernel assigns ports from %d on, but ours end at %d", lowest, last)
		}
	}

	chosen, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(chosen+1))
	if err != nil {
		t.Skipf("another process has taken port %d", chosen+1)
	}
	defer taken.Close()
	if next, err := Free(); err != nil || next == chosen+1 {
		t.Errorf("got port %d (%v), on which the test listens", next, err)
	}
}
