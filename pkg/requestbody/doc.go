// Package requestbody bounds the bodies of requests: the time to receive them, and the memory while
// they are read, decoded and held. Users, or addresses where the user is unknown, have fair shares
// of both, so no client keeps others from sending.
package requestbody
