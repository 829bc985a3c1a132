//go:build !linux

package measure

// WithoutHugePages does nothing: only Linux has transparent huge pages.
func WithoutHugePages() error { return nil }
