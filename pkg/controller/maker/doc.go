// Package maker creates the next revision of a chain for an object that requests it. The
// controllers of ClusterExtensions and ChartKinds are its front ends. They supply the desired
// content, the identity and the policy, and describe the outcome in the status of their objects.
//
// Make decides. Each step may end the pass:
//
//  1. Current: the newest revision was made from the desired content. The writer maintains it.
//  2. The policy: which identity creates the next revision, and whether a user must approve it.
//  3. Proposed: such a revision waits for approval already, or none can be created.
//  4. The content is rendered and checked. Also Current, if the newest revision has this content.
//  5. Created: the writer writes the next revision. The API may deny or refuse it.
package maker
