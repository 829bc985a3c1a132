// Package notify makes notifications for receivers, and sends them.
//
// facts.go derives facts from the status of an object. The facts are true now, so a process that
// was down derives the same ones. event.go makes a CloudEvent of a fact, summary.go one of many
// facts, and receiver.go reads a receiver from a Secret and sends to it.
package notify
