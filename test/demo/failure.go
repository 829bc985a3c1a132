package main

import "fmt"

// failure is a claim of the demo that does not hold.
type failure struct {
	claim     string
	want, got string
}

func (f *failure) Error() string {
	return fmt.Sprintf("%s: expected %s, found %s", f.claim, f.want, f.got)
}

// claim prints a check mark if it holds; otherwise it stops the act.
func (s *screen) claim(holds bool, claim, want, got string) {
	if !holds {
		panic(stop{&failure{claim: claim, want: want, got: got}})
	}
	s.ok("%s", claim)
}

// stop ends an act, because each step needs the previous steps. It is a panic that play recovers.
type stop struct{ error }

func must(err error) {
	if err != nil {
		panic(stop{err})
	}
}

// get returns the result of a step, or stops the act if the step failed.
func get[T any](value T, err error) T {
	must(err)
	return value
}
