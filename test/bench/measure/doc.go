// Package measure compares implementations on a shared machine. They run in turn in one run, so
// that a disturbance affects all, and are judged by their ratio. The package does not depend on the
// measured code.
//
//	result, err := measure.Run(ctx, measure.Case{
//		Name: "LIST", Rounds: 11,
//		Subjects: []measure.Subject{{Name: "ours", Do: ours}, {Name: "peer", Do: theirs}},
//	})
//	ratio := result.Ratio("peer", "ours") // how many times faster ours is
//
// A Report collects results and verdicts and prints them as plain tables.
package measure
