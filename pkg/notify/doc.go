// Package notify builds notifications and sends them to receivers.
//
// facts.go derives facts from the present status of an object. A process that was down derives the
// same facts later. event.go turns a fact into a CloudEvent, summary.go turns many facts into one
// event, and receiver.go reads a receiver from a Secret and sends to it.
package notify
