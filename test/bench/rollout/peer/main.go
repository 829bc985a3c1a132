// Command peer runs the tools that `make bench SUITE=rollout` compares with Penstock: Helm's Go
// SDK, and a loop of one server-side apply per object. It is a separate process, so that its
// processor time and memory can be measured. It reads orders from standard input, one per line, and
// answers each with a line.
//
//	peer helm KUBECONFIG
//	peer loop KUBECONFIG
//
// An operator takes no orders: it installs the chart of a folder for each Central, until standard
// input ends.
//
//	peer operator KUBECONFIG CHART
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/penstock-project/penstock/test/bench/rollout/order"
)

type system interface {
	// prepare reads the input of an order and returns the function that executes it. Only that
	// function is measured.
	prepare(o order.Order) (func(context.Context) error, error)
}

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	wanted := 2
	if len(args) > 0 && args[0] == "operator" {
		wanted++
	}
	if len(args) != wanted {
		return fmt.Errorf("want a system, a kubeconfig file, and for an operator a chart, have %q", args)
	}
	config, err := clientcmd.BuildConfigFromFlags("", args[1])
	if err != nil {
		return fmt.Errorf("reading kubeconfig %s: %w", args[1], err)
	}
	// The server has priority and fairness; a client-side limit would dominate the measurement.
	config.QPS = -1
	config.UserAgent = "peer/" + args[0]
	var peer system
	switch args[0] {
	case "helm":
		peer, err = newHelm(config)
	case "loop":
		peer, err = newLoop(config)
	case "operator":
		return runOperator(ctx, config, args[2], in)
	default:
		return fmt.Errorf("there is no system %q: want helm, loop or operator", args[0])
	}
	if err != nil {
		return err
	}
	return serve(ctx, peer, in, out)
}

func serve(ctx context.Context, peer system, in io.Reader, out io.Writer) error {
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var o order.Order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return fmt.Errorf("reading an order: %w", err)
		}
		if err := answers.Encode(carryOut(ctx, peer, o)); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
	return lines.Err()
}

func carryOut(ctx context.Context, peer system, o order.Order) order.Answer {
	do, err := peer.prepare(o)
	if err != nil {
		return order.Answer{Error: err.Error()}
	}
	began := time.Now()
	err = do(ctx)
	answer := order.Answer{Millis: float64(time.Since(began)) / float64(time.Millisecond)}
	if err != nil {
		answer.Error = err.Error()
	}
	return answer
}

func each[T any](ctx context.Context, workers int, items []T, do func(context.Context, T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, workers))
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}

func read(release order.Release) ([]json.RawMessage, error) {
	content, err := os.ReadFile(release.File)
	if err != nil {
		return nil, fmt.Errorf("reading the objects of %s: %w", release.Name, err)
	}
	var objects []json.RawMessage
	if err := json.Unmarshal(content, &objects); err != nil {
		return nil, fmt.Errorf("reading the objects of %s: %w", release.Name, err)
	}
	return objects, nil
}

var (
	_ system = (*helm)(nil)
	_ system = (*loop)(nil)
)
