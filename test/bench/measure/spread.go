package measure

import (
	"math"
	"slices"
)

// Spread has the quantiles of samples.
type Spread struct {
	// Median is the median. Low and High are the 10th and 90th percentile, and P99 is the 99th.
	Median, Low, High, P99 float64
	// Samples is the number of samples.
	Samples int
}

// SpreadOf returns the spread of unsorted samples. Without samples everything is zero.
func SpreadOf(samples []float64) Spread {
	if len(samples) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	return Spread{
		Median: quantile(sorted, 0.5), Low: quantile(sorted, 0.1), High: quantile(sorted, 0.9), P99: quantile(sorted, 0.99),
		Samples: len(sorted),
	}
}

func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := math.Floor(at)
	next := min(int(below)+1, len(sorted)-1)
	return sorted[int(below)] + (at-below)*(sorted[next]-sorted[int(below)])
}
