// Package requestbody bounds what the bodies of requests take: the time in which they
// come, and the memory while they are read, decoded and held. Both are divided fairly
// between users, or between addresses where nobody is known, so that nobody keeps others from sending theirs.
package requestbody
