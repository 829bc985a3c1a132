// Package screens has the API of the console: the data of each screen, projected from answers of
// Penstock's API to the user, and for each action the user's own call. It keeps no data and makes
// no decisions. The cluster refuses actions without the right.
//
// A write identifies the content of the screen: uid and generation, the revision that is rolled
// back, or the hash of a plan. It is refused when that content has changed.
package screens
