// Package maker makes the next revision of a chain for an object that asks for it. The controllers
// of ClusterExtensions and ChartKinds are its front ends. They say what is desired, in whose name,
// and under which policy, and word the outcome for the status of their objects.
//
// Make decides. Each step may end the pass:
//
//  1. Current: the newest revision was made from the desired content. The writer maintains it.
//  2. The policy: in whose name the next revision is made, and whether a person must approve it.
//  3. Proposed: such a revision waits for approval already, or none can be made.
//  4. The content, rendered and checked. Also Current, if the newest revision has this content.
//  5. Created: the writer writes the next revision. The API may deny or refuse it.
//
// Files: chain.go reads a chain, make.go decides, write.go creates and withdraws revisions,
// outcome.go has the outcomes, loop.go the queue of passes.
package maker
