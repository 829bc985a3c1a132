// Package notify says what receivers are notified of, and sends it.
//
// facts.go derives facts from the status of an object. They are true now: a process that was down
// derives the same ones. event.go makes CloudEvents of facts, summary.go makes one of many,
// receiver.go reads a receiver from a Secret and sends to it.
package notify
