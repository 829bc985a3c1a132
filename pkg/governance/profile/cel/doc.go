// Package cel computes profiles from definitions that users write: requirements, options and
// expressions are the input, items the result. It uses no client.
//
// Users can write hostile expressions. Before a definition is stored, Validate compiles every
// expression and estimates its cost. Evaluation has a budget of steps and memory, and its result is
// checked before use. ADR 0028 has the reasons.
package cel
