// Package requestbody bounds the time to receive request bodies, and the memory to read, decode and
// hold them. Users have fair shares of both; an unknown user is identified by address. So no client
// can keep other clients from sending.
package requestbody
