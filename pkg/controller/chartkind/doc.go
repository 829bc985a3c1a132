// Package chartkind creates revisions for custom resources whose kind has a ChartKind. It makes
// values from a custom resource, renders the chart, and creates the next revision as the
// ChartKind's ServiceAccount. Package chain rolls the revision out.
//
// It runs on the leader. At rest it sends no request: it watches all its inputs. Two loops write
// the status of custom resources by server-side apply. Each has its own fields and its own field
// manager:
//
//   - The first loop creates revisions. It processes a custom resource when its generation, an
//     annotation, an input or the chart has changed, or when its revision has succeeded or failed.
//     A
//     change of its status causes no pass.
//   - The second loop writes Ready and Progressing. It processes a custom resource when it or one
//     of
//     its workloads has changed. It renders nothing, and creates no revision.
package chartkind
