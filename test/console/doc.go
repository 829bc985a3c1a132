// Package console drives the console in a real browser, against Penstock on a real control
// plane: every screen and every action, as somebody with a mouse, with a keyboard alone, or
// with a screen reader would. It is a module of its own, so that what drives a browser is no
// dependency of Penstock.
//
// It needs Debian's chromium, and axe-core from npm for accessibility. Where they are missing it
// says so and is skipped; with PENSTOCK_CONSOLE=required, as in CI, it fails.
//
// SCREENSHOTS=1 writes the pictures of docs/console.
package console
