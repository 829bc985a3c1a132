// Package maker makes the next revision of a chain for an object that asks for one. The
// controllers of ClusterExtensions and ChartKinds are its front ends: they say what is desired,
// in whose name, and under which policy, and word the outcome for the status of their objects.
//
// Make decides, and each step may end the pass:
//
//  1. Current: the newest revision is made of what is desired. The writer keeps it.
//  2. The policy: in whose name the next revision is made, and whether a person has to approve it.
//  3. Proposed: such a revision waits for approval already, or none can be made.
//  4. The content, rendered and judged. Current as well, when the newest revision has it.
//  5. Created: the writer writes the next revision. The API may deny or refuse it.
//
// Files: chain.go reads a chain, make.go decides, write.go creates and withdraws revisions,
// outcome.go has the outcomes, loop.go the queue of passes.
package maker
