// Package app joins the parts of the controllers' process, which do not know each other: engines,
// clients, watches, metrics and checks. It makes no decisions itself.
package app
