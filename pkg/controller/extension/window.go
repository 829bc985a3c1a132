package extension

import (
	"context"
	"fmt"

	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/maintenancewindow"
)

// Windows reads the maintenance windows of the host.
type Windows interface {
	// Decide reports whether an upgrade of an extension with these labels may begin now.
	Decide(labels map[string]string) maintenancewindow.Decision
	// OnChange registers a function that is called when decisions may have changed.
	OnChange(tell func())
}

// mayBegin returns the reason why a revision that no user just requested must wait, or nil. It
// waits for the end of a freeze, for a maintenance window, and for the installed operator. It is
// called again right before the write, because rendering takes a while.
func (s *scope) mayBegin(ctx context.Context, identity maker.Identity) *maker.Outcome {
	if !s.unasked {
		return nil
	}
	if stopped := s.waitsForWindow(); stopped != nil {
		return stopped
	}
	return s.notUpgradeable(ctx, identity)
}

// waitsForWindow returns an outcome if an upgrade must wait for a maintenance window, or nil. It
// also waits for the end of a freeze. Otherwise the rollout would begin at the end of the freeze,
// outside of a window.
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
	// The window may have opened before the extension was recorded as waiting.
	if decision = s.Windows.Decide(s.object.GetLabels()); decision.Open {
		return nil
	}
	return stop(status.WaitingForWindow, decision.String(), "")
}

func (c *Controller) windowsChanged() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.windowed {
		c.queue.Add(name)
	}
}
