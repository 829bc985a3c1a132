// Package revisionhistory serves the history of an extension: as the subresource
// history of each of its revisions, and as the virtual resource
// revisionhistories, by the extension's name, which also answers when all
// revisions are gone. It joins what the head of the chain remembers with what
// its revisions say now.
package revisionhistory
