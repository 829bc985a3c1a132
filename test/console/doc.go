// Package console tests the console in a real browser, against Penstock on a real control plane. It
// tests every screen and every action with the mouse, with the keyboard alone, and for screen
// readers. It is a module of its own, so that Penstock does not depend on the browser's libraries.
//
// It needs Debian's chromium, and axe-core from npm for accessibility. Without them it is skipped;
// with PENSTOCK_CONSOLE=required, as in CI, it fails.
//
// SCREENSHOTS=1 writes the pictures of docs/console.
package console
