package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// testFile is a file of tests, in the form of promtool.
type testFile struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []testCase     `yaml:"tests"`
}

type testCase struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Input    []input        `yaml:"input_series"`
	Alerts   []expectation  `yaml:"alert_rule_test"`
	// Records are expressions, usually the names of what recording rules make.
	Records []value `yaml:"promql_expr_test"`
}

// value is what an expression gives at a time, nothing when there are no samples.
type value struct {
	Expr     string         `yaml:"expr"`
	EvalTime model.Duration `yaml:"eval_time"`
	Samples  []struct {
		Labels string  `yaml:"labels"`
		Value  float64 `yaml:"value"`
	} `yaml:"exp_samples"`
}

type input struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// expectation is which alerts of a name fire at a time.
type expectation struct {
	EvalTime model.Duration `yaml:"eval_time"`
	Alert    string         `yaml:"alertname"`
	Firing   []alert        `yaml:"exp_alerts"`
}

// alert that fires, without the label alertname.
type alert struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

// rule is an alert, or a recording rule, with its expression parsed.
type rule struct {
	rulefmt.Rule
	expr parser.Expr
}

// load reads a file of tests and the rules that it names.
func load(file string) (testFile, []rule, error) {
	var test testFile
	data, err := os.ReadFile(file)
	if err != nil {
		return test, nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&test); err != nil {
		return test, nil, err
	}
	if test.EvaluationInterval == 0 {
		test.EvaluationInterval = model.Duration(time.Minute)
	}
	var rules []rule
	for _, name := range test.RuleFiles {
		more, err := loadRules(filepath.Join(filepath.Dir(file), name))
		if err != nil {
			return test, nil, fmt.Errorf("%s: %w", name, err)
		}
		rules = append(rules, more...)
	}
	return test, rules, nil
}

// loadRules reads a PrometheusRule, or a file of rules.
func loadRules(file string) ([]rule, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var object struct {
		Kind string    `yaml:"kind"`
		Spec yaml.Node `yaml:"spec"`
	}
	if err := yaml.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	if object.Kind == "PrometheusRule" {
		if data, err = yaml.Marshal(&object.Spec); err != nil {
			return nil, err
		}
	}
	expressions := parser.NewParser(parser.Options{})
	groups, errs := rulefmt.Parse(data, false, model.UTF8Validation, expressions, slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var rules []rule
	for _, group := range groups.Groups {
		for _, r := range group.Rules {
			if r.KeepFiringFor != 0 {
				return nil, fmt.Errorf("group %s: only alerts without keep_firing_for can be tested", group.Name)
			}
			expr, err := expressions.ParseExpr(r.Expr)
			if err != nil {
				return nil, fmt.Errorf("%s%s: %w", r.Alert, r.Record, err)
			}
			rules = append(rules, rule{Rule: r, expr: expr})
		}
	}
	return rules, nil
}

// series are the samples that a test gives.
func (c testCase) series() ([]samples, error) {
	var all []samples
	for _, in := range c.Input {
		metric, values, err := parser.NewParser(parser.Options{}).ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Series, err)
		}
		s := samples{metric: metric}
		for i, v := range values {
			if v.Histogram != nil {
				return nil, fmt.Errorf("%s: native histograms are not supported", in.Series)
			}
			if !v.Omitted {
				s.points = append(s.points, point{at: time.Duration(i) * time.Duration(c.Interval), value: v.Value})
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// asMap returns labels without some.
func asMap(l labels.Labels, without ...string) map[string]string {
	m := labels.NewBuilder(l).Del(without...).Labels().Map()
	if m == nil {
		m = map[string]string{}
	}
	return m
}
