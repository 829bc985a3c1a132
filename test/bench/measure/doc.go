// Package measure compares ways of doing the same thing on a machine that others
// use too: all of them in turn, in one run, so that what disturbs one disturbs
// all, and judged by their ratio. It knows nothing of what is measured.
//
//	result, err := measure.Run(ctx, measure.Case{
//		Name: "LIST", Rounds: 11,
//		Subjects: []measure.Subject{{Name: "ours", Do: ours}, {Name: "peer", Do: theirs}},
//	})
//	ratio := result.Ratio("peer", "ours") // how many times faster ours is
//
// A Report collects results and verdicts and prints them as plain tables.
package measure
