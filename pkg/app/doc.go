// Package app puts the controllers of the program together: the engines that they use,
// the clients and watches that these need, metrics and checks. Here the parts of the
// program meet that do not know each other. The decisions are in those parts.
package app
