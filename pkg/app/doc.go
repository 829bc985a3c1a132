// Package app puts the controllers of the program together: the engines that they
// use, the clients and watches that these need, metrics and checks. It is where the
// parts of the program meet that do not know each other; what decides anything is in
// those parts.
package app
