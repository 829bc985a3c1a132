package extension

import (
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
)

// Windows are the maintenance windows of the host.
type Windows interface {
	// Decide says whether an upgrade of an extension with these labels may begin now.
	Decide(labels map[string]string) maintenancewindow.Decision
	// OnChange has a function called when decisions may be others.
	OnChange(tell func())
}

// waitsForWindow says that a revision that nobody asked for just now has to wait for a maintenance
// window; nil when it may begin. It is asked again right before the write: rendering takes a while.
func (s *scope) waitsForWindow() *maker.Outcome {
	if !s.unasked {
		return nil
	}
	decision := s.Windows.Decide(s.object.GetLabels())
	s.noteWindowed(s.extension.Name, !decision.Open)
	if decision.Open {
		return nil
	}
	// The window may have opened before anybody knew that the extension waits.
	if decision = s.Windows.Decide(s.object.GetLabels()); decision.Open {
		return nil
	}
	return stop(status.WaitingForWindow, decision.String(), "")
}

// windowsChanged asks for a pass over each extension that waits for a window.
func (c *Controller) windowsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.windowed {
		c.queue.Add(name)
	}
}
