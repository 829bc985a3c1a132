// Package console tests the console in a real browser, against Penstock on a real control plane. It
// tests every screen and every action with the mouse, with the keyboard alone, and for screen
// readers. It is a separate Go module, so that Penstock does not depend on the browser's libraries.
//
// The tests need Debian's chromium, and axe-core from npm for accessibility. Without them the tests
// are skipped. With PENSTOCK_CONSOLE=required, as in CI, they fail.
//
// SCREENSHOTS=1 writes the pictures of docs/console.
package console
