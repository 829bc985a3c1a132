package archive

import "fmt"

// order checks the order of entries, for writers and readers: chains by rising name, and each
// chain's announced revisions.
type order struct {
	chains int
	// name is the name of the current chain.
	name string
	// left are the numbers of its remaining revisions.
	left []int64
}

func (o *order) chain(next Chain, limits Limits) error {
	if err := o.end(); err != nil {
		return err
	}
	if o.chains > 0 && next.Name <= o.name {
		return fmt.Errorf("extension %s comes after extension %s: extensions must be sorted by name, each once", next.Name, o.name)
	}
	if o.chains++; o.chains > limits.Chains {
		return fmt.Errorf("there are more than the %d extensions that are allowed", limits.Chains)
	}
	o.name, o.left = next.Name, next.Revisions
	return nil
}

func (o *order) revision(number int64) error {
	if len(o.left) == 0 || o.left[0] != number {
		return fmt.Errorf("revision %d of extension %s is not the next one that the extension lists", number, o.name)
	}
	o.left = o.left[1:]
	return nil
}

// end returns an error if an announced revision is missing.
func (o *order) end() error {
	if len(o.left) > 0 {
		return fmt.Errorf("revision %d of extension %s is missing", o.left[0], o.name)
	}
	return nil
}
