// Command rules tests the alerts of PrometheusRules with Prometheus' own query
// engine:
//
//	rules artifacts/monitoring/tests/*.yaml
//
// A test has the form of `promtool test rules`, of which it may use alert_rule_test;
// whatever else it asks for is an error, and so is an alert that no test has fire. Its rule_files may be PrometheusRules or
// plain files of rules.
//
// It is here instead of promtool because that is built from 1,100 packages, the
// clients of several clouds among them, and this from 400.
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	failed := false
	fired := map[string]bool{}
	for _, file := range os.Args[1:] {
		test, rules, err := load(file)
		if err == nil {
			err = run(context.Background(), test, rules, fired)
		}
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", file, err)
		}
	}
	for name, is := range fired {
		if !is {
			failed = true
			fmt.Fprintf(os.Stderr, "no test has the alert %s fire\n", name)
		}
	}
	switch {
	case len(os.Args) == 1:
		fmt.Fprintln(os.Stderr, "usage: rules TEST-FILE...")
		os.Exit(2)
	case failed:
		os.Exit(1)
	default:
		fmt.Printf("%d alerts are as their tests say\n", len(fired))
	}
}
