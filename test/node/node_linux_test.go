//go:build integration

package node

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// tools is the folder of the node's programs.
var tools string

func TestMain(m *testing.M) {
	plane.Hold()
	os.Exit(run(m))
}

// run runs the tests in separate Linux namespaces, which end with the tests.
func run(m *testing.M) int {
	if err := plane.Isolates(); err != nil {
		if os.Getenv("PENSTOCK_NAMESPACES") == "required" {
			return failed(err)
		}
		fmt.Printf("skipped: %v; PENSTOCK_NAMESPACES=required makes this a failure\n", err)
		return 0
	}
	var err error
	if tools, err = plane.NodeTools(context.Background(), os.Stderr); err != nil {
		return failed(err)
	}
	if os.Getpid() != 1 && selected("TestOperator") {
		if err := fetchOperators(context.Background()); err != nil {
			return failed(err)
		}
	}
	status, err := plane.RunIsolated(m.Run)
	if err != nil {
		return failed(err)
	}
	return status
}

// selected reports whether the flags of go test select a test.
func selected(test string) bool {
	flag.Parse()
	matches := func(name string) bool {
		pattern, _, _ := strings.Cut(flag.Lookup(name).Value.String(), "/")
		matched, err := regexp.MatchString(pattern, test)
		return err == nil && matched && flag.Lookup(name).Value.String() != ""
	}
	return (matches("test.run") || flag.Lookup("test.run").Value.String() == "") && !matches("test.skip")
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "error:", err)
	return 1
}
