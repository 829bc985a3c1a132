// Package chartkind brings about what custom resources ask for that a ChartKind installs with a
// chart: it makes values of a custom resource, renders the chart, and creates the next revision
// in the name of the ServiceAccount of the ChartKind. Rolling out is for package chain.
//
// The leader does it. Nothing is asked at rest: everything is watched. Two loops write the
// status of custom resources, each its own fields, by server-side apply with a manager of its
// own:
//
//   - the first makes revisions. It looks at a custom resource when its generation, an
//     annotation, an input or the chart has changed, or when its revision has succeeded or
//     failed, and never because of its status.
//   - the second has Ready and Progressing. It looks at a custom resource when that has changed,
//     or one of its workloads. It renders nothing, and makes no revision.
package chartkind
