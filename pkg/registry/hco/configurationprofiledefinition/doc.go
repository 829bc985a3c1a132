// Package configurationprofiledefinition serves the definitions of profiles that users write:
// stored objects, and the subresource that says what a plan of one would do now.
package configurationprofiledefinition
