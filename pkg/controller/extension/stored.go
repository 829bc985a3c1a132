package extension

import "context"

// Stored knows which extensions have a Helm release, without a request for each.
type Stored interface {
	// Run watches until ctx ends. Changed is called when there is a first answer, and when there
	// may be another one.
	Run(ctx context.Context, changed func())
	// Releases are those that are stored, by the name of their extension: true for one that does
	// not say that the engine has its objects. An error means that it is not known.
	Releases() (map[string]bool, error)
}

// hasRelease is whether the extension has a release that the engine has not taken over, of which
// nobody is asked. Known is false as long as that is not known.
func (s *scope) hasRelease() (has, known bool) {
	if s.Stored == nil {
		return false, false
	}
	all, err := s.Stored.Releases()
	return all[s.extension.Name], err == nil
}

// addStored asks for a pass over each extension with a release that the engine has not taken over.
func (c *Controller) addStored() {
	all, err := c.Stored.Releases()
	if err != nil {
		return
	}
	for name, open := range all {
		if open {
			c.queue.Add(name)
		}
	}
}
