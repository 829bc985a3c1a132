// Package hostile measures the work that a user with few rights can cause, by one request and by
// the expressions of one revision.
package hostile
