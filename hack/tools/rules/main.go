// Command rules tests the alerts of PrometheusRules with Prometheus' own query
// engine:
//
//	rules artifacts/monitoring/tests/*.yaml
//	rules dashboard FILE PANELS SCRAPE...   every query of a dashboard, on scrapes of a run;
//	                                        PANELS, with | between them, may be empty
//
// A test has the form of `promtool test rules`, of which it may use alert_rule_test and
// promql_expr_test; whatever else it asks for is an error, and so is an alert that no test has
// fire, and a recording rule of which no test has a sample. Its rule_files may be
// PrometheusRules or plain files of rules.
//
// It is here instead of promtool because that is built from 1,100 packages, the
// clients of several clouds among them, and this from 400.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
)

func main() {
	if len(os.Args) > 4 && os.Args[1] == "dashboard" {
		count, err := evaluate(context.Background(), os.Args[2], strings.Split(os.Args[3], "|"), os.Args[4:])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Printf("%d queries have results\n", count)
		return
	}
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
			fmt.Fprintf(os.Stderr, "no test has the alert or recording rule %s give anything\n", name)
		}
	}
	switch {
	case len(os.Args) == 1:
		fmt.Fprintln(os.Stderr, "usage: rules TEST-FILE...")
		os.Exit(2)
	case failed:
		os.Exit(1)
	default:
		fmt.Printf("%d alerts and recording rules are as their tests say\n", len(fired))
	}
}
