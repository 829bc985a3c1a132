// Package cel makes profiles of definitions that users write: requirements, options and
// expressions in, items out. It uses no client. Users can write hostile expressions: every
// expression is compiled and its cost estimated before a definition is stored (Compile),
// evaluated within a budget of steps and memory, and what it makes is looked at before
// anybody uses it. ADR 0028 says why.
package cel
