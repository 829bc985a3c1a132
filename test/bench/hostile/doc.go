// Package hostile measures what somebody can make Penstock do who has hardly any rights:
// by one request, and by the expressions of one revision.
package hostile
