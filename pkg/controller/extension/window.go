package extension

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
)

// Windows are the maintenance windows of the host.
type Windows interface {
	// Decide reports whether an upgrade of an extension with these labels may begin now.
	Decide(labels map[string]string) maintenancewindow.Decision
	// OnChange has a function called when decisions may be others.
	OnChange(tell func())
}

// mayBegin says why a revision that nobody asked for just now has to wait: for the end of a freeze, for a
// maintenance window, or for the operator that is installed. It returns nil when the revision may begin.
// It is asked again right before the write: rendering takes a while.
func (s *scope) mayBegin(ctx context.Context, identity maker.Identity) *maker.Outcome {
	if !s.unasked {
		return nil
	}
	if stopped := s.waitsForWindow(); stopped != nil {
		return stopped
	}
	return s.notUpgradeable(ctx, identity)
}

// waitsForWindow says that an upgrade has to wait for a maintenance window, nil when it has not. It waits
// for the end of a freeze, too: begun now, it would be rolled out when that ends, whatever the windows say then.
func (s *scope) waitsForWindow() *maker.Outcome {
	if freeze, err := s.Freezes.Frozen(); err != nil {
		return retry(status.WaitingForWindow, fmt.Errorf("finding out whether the cluster is frozen: %w", err))
	} else if freeze != nil {
		return stop(status.WaitingForWindow, freeze.String(), "").Later()
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

// windowsChanged queues each extension that waits for a window.
func (c *Controller) windowsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.windowed {
		c.queue.Add(name)
	}
}
