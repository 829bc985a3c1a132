package plane

// UnpullableImages is the prefix of images that no node of a plane can pull. Their containers stay
// in ErrImagePull, and their Pods never become ready. Any other image "runs" at once. The host is
// in a domain that is reserved never to exist.
const UnpullableImages = "registry.invalid/"

// unpullableStage is the kwok stage for these images. Its weight gives it precedence over the
// release's own pod-ready. It renders the same status every time, so it changes nothing after the
// first time.
const unpullableStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-unpullable
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  weight: 1
  selector:
    matchExpressions:
    - key: .metadata.deletionTimestamp
      operator: DoesNotExist
    - key: .status.phase
      operator: In
      values: [Pending]
    - key: .spec.containers.[].image | select(startswith("` + UnpullableImages + `"))
      operator: Exists
  next:
    statusTemplate: |
      {{ $since := .metadata.creationTimestamp }}
      phase: Pending
      startTime: {{ $since | Quote }}
      conditions:
      - type: Initialized
        status: "True"
        lastTransitionTime: {{ $since | Quote }}
      - type: ContainersReady
        status: "False"
        reason: ContainersNotReady
        lastTransitionTime: {{ $since | Quote }}
      - type: Ready
        status: "False"
        reason: ContainersNotReady
        lastTransitionTime: {{ $since | Quote }}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          waiting:
            reason: ErrImagePull
            message: {{ printf "pulling image %s: no such host" .image | Quote }}
      {{ end }}
`
