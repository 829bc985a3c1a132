package main

import "fmt"

// failure is a claim of the demo that does not hold.
type failure struct {
	// claim that was to be checked.
	claim string
	// want and got are what was expected and what was found.
	want, got string
}

func (f *failure) Error() string {
	return fmt.Sprintf("%s: expected %s, found %s", f.claim, f.want, f.got)
}

// claim prints a check mark when it holds, and is a failure otherwise.
func (s *screen) claim(holds bool, claim, want, got string) error {
	if !holds {
		return &failure{claim: claim, want: want, got: got}
	}
	s.ok("%s", claim)
	return nil
}
