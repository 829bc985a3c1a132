package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// dashboard is what is read of one of Grafana's.
type dashboard struct {
	Panels []panel `json:"panels"`
}

type panel struct {
	Title   string `json:"title"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// evaluate asks every query of a dashboard of scrapes of a real run, which were taken a
// minute after each other, and returns how many there are. A query that gives nothing is an
// error, unless its panel is one of those that may be empty.
func evaluate(ctx context.Context, file string, mayBeEmpty []string, scrapes []string) (int, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	var read dashboard
	if err := json.Unmarshal(content, &read); err != nil {
		return 0, fmt.Errorf("reading %s: %w", file, err)
	}
	series, err := readScrapes(scrapes)
	if err != nil {
		return 0, err
	}
	engine := promql.NewEngine(promql.EngineOpts{Logger: slog.New(slog.DiscardHandler), MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	at, count := time.Duration(len(scrapes)-1)*time.Minute, 0
	var errs []error
	for _, panel := range read.Panels {
		for _, target := range panel.Targets {
			count++
			// Grafana's own variables.
			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")
			found, err := evaluation{engine: engine, storage: series}.query(ctx, expr, at)
			switch {
			case err != nil:
				errs = append(errs, fmt.Errorf("panel %q: %s: %w", panel.Title, target.Expr, err))
			case len(found) == 0 && !slices.Contains(mayBeEmpty, panel.Title):
				errs = append(errs, fmt.Errorf("panel %q: %s gives nothing", panel.Title, target.Expr))
			}
		}
	}
	if count == 0 {
		errs = append(errs, fmt.Errorf("%s has no query", file))
	}
	return count, errors.Join(errs...)
}

// readScrapes reads what a program exposed, in the text format of Prometheus.
func readScrapes(files []string) (memory, error) {
	found := map[string]*samples{}
	var order []string
	for i, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			line := lines.Text()
			end := strings.LastIndexByte(line, ' ')
			if strings.HasPrefix(line, "#") || end < 0 {
				continue
			}
			value, err := strconv.ParseFloat(line[end+1:], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %q: %w", name, line, err)
			}
			s := found[line[:end]]
			if s == nil {
				metric, err := parser.NewParser(parser.Options{}).ParseMetric(line[:end])
				if err != nil {
					return nil, fmt.Errorf("reading %s: %q: %w", name, line, err)
				}
				s = &samples{metric: metric}
				found[line[:end]], order = s, append(order, line[:end])
			}
			s.points = append(s.points, point{at: time.Duration(i) * time.Minute, value: value})
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	all := make(memory, len(order))
	for i, key := range order {
		all[i] = *found[key]
	}
	return all, nil
}
