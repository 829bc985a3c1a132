// Package cel makes profiles from definitions that users write: requirements, options and
// expressions in, items out. It uses no client.
//
// Users can write hostile expressions. Before a definition is stored, Compile compiles every
// expression and estimates its cost. Evaluation has a budget of steps and memory, and its result is
// checked before use. ADR 0028 has the reasons.
package cel
