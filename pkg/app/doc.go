// Package app assembles the parts of the controllers' process: engines, clients, watches, metrics
// and checks. The parts do not import each other. The package itself makes no decisions.
package app
