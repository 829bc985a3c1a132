package main

import "fmt"

// failure is a claim of the demo that does not hold.
type failure struct {
	// claim that was to be checked.
	claim string
	// want is the expected and got the found text.
	want, got string
}

func (f *failure) Error() string {
	return fmt.Sprintf("%s: expected %s, found %s", f.claim, f.want, f.got)
}

// claim prints a check mark when it holds, and stops the act otherwise.
func (s *screen) claim(holds bool, claim, want, got string) {
	if !holds {
		panic(stop{&failure{claim: claim, want: want, got: got}})
	}
	s.ok("%s", claim)
}

// stop ends an act: each step needs the one before it. It is a panic that play recovers.
type stop struct{ error }

// must stops the act when a step failed.
func must(err error) {
	if err != nil {
		panic(stop{err})
	}
}

// get is must for a step with a result.
func get[T any](value T, err error) T {
	must(err)
	return value
}
