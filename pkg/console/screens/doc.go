// Package screens has the API of the console: for each screen what it shows, projected from
// what Penstock's API answers to the user, and for each action the user's own call. It keeps
// nothing and decides nothing: what somebody cannot do, the cluster refuses.
//
// A write names what was on the screen (a uid and a generation, the revision that is rolled
// back, the hash of a plan), and is refused when that has changed.
package screens
