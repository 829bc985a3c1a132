package schema

import (
	"maps"
	"strings"
)

// defaults are the values that the API server sets in fields of its own types, by type and field.
// No library has them, so this table repeats those from k8s.io/kubernetes/pkg/apis/*/v1/defaults.go
// that manifests often omit or repeat. They change only with a new version of an API.
// docs/reference/diff.md prints the table.
//
// The table also has zero values that the Go type does not distinguish from absent fields.
type defaults map[string]map[string]any

type computed func(parent Parent) (any, bool)

// defaulted is an object whose fields all have defaults.
func defaulted() map[string]any { return map[string]any{} }

func builtinDefaults() defaults {
	all := make(defaults)
	for _, some := range []defaults{
		podDefaults("io.k8s.api.core.v1."),
		volumeDefaults("io.k8s.api.core.v1."),
		coreDefaults("io.k8s.api.core.v1."),
		appsDefaults("io.k8s.api.apps.v1."),
		batchDefaults("io.k8s.api.batch.v1."),
		rbacDefaults("io.k8s.api.rbac.v1."),
		webhookDefaults("io.k8s.api.admissionregistration.v1."),
		extraDefaults(),
	} {
		maps.Copy(all, some)
	}
	return all
}

func podDefaults(core string) defaults {
	container := map[string]any{
		"imagePullPolicy":          computed(imagePullPolicy),
		"resources":                defaulted(),
		"stdin":                    false,
		"stdinOnce":                false,
		"terminationMessagePath":   "/dev/termination-log",
		"terminationMessagePolicy": "File",
		"tty":                      false,
		"workingDir":               "",
	}
	return defaults{
		core + "PodSpec": {
			"dnsPolicy":                     "ClusterFirst",
			"enableServiceLinks":            true,
			"hostIPC":                       false,
			"hostNetwork":                   false,
			"hostPID":                       false,
			"restartPolicy":                 "Always",
			"schedulerName":                 "default-scheduler",
			"securityContext":               defaulted(),
			"serviceAccount":                sibling("serviceAccountName"),
			"terminationGracePeriodSeconds": int64(30),
		},
		core + "Container":          container,
		core + "EphemeralContainer": container,
		core + "ContainerPort":      {"hostIP": "", "hostPort": int64(0), "name": "", "protocol": "TCP"},
		core + "EnvVar":             {"value": ""},
		core + "ObjectFieldSelector": {
			"apiVersion": "v1",
		},
		core + "ResourceFieldSelector": {"divisor": "0"},
		core + "Probe": {
			"failureThreshold":    int64(3),
			"initialDelaySeconds": int64(0),
			"periodSeconds":       int64(10),
			"successThreshold":    int64(1),
			"timeoutSeconds":      int64(1),
		},
		core + "HTTPGetAction":        {"path": "/", "scheme": "HTTP"},
		core + "GRPCAction":           {"service": ""},
		core + "VolumeMount":          {"readOnly": false, "subPath": ""},
		core + "LocalObjectReference": {"name": ""},
	}
}

// imagePullPolicy is Always for the tag latest or no tag, and otherwise IfNotPresent.
func imagePullPolicy(container Parent) (any, bool) {
	image, _ := container.Value("image").(string)
	if image == "" {
		return nil, false
	}
	if strings.Contains(image, "@") {
		return "IfNotPresent", true
	}
	name := image[strings.LastIndex(image, "/")+1:]
	if _, tag, ok := strings.Cut(name, ":"); ok && tag != "latest" {
		return "IfNotPresent", true
	}
	return "Always", true
}

// sibling is a default that copies another field.
func sibling(field string) computed {
	return func(parent Parent) (any, bool) {
		value := parent.Value(field)
		return value, value != nil
	}
}

func volumeDefaults(core string) defaults {
	const mode = int64(0o644)
	return defaults{
		core + "ConfigMapVolumeSource":         {"defaultMode": mode},
		core + "DownwardAPIVolumeSource":       {"defaultMode": mode},
		core + "ProjectedVolumeSource":         {"defaultMode": mode},
		core + "SecretVolumeSource":            {"defaultMode": mode},
		core + "EmptyDirVolumeSource":          {"medium": ""},
		core + "HostPathVolumeSource":          {"type": ""},
		core + "ServiceAccountTokenProjection": {"expirationSeconds": int64(3600)},
		core + "PersistentVolumeClaimSpec":     {"volumeMode": "Filesystem"},
		// Claims in a StatefulSet omit these fields.
		core + "PersistentVolumeClaim":             {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": defaulted()},
		core + "PersistentVolumeClaimStatus":       {"phase": "Pending"},
		core + "PersistentVolumeSpec":              {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
		core + "PersistentVolumeClaimVolumeSource": {"readOnly": false},
	}
}

func coreDefaults(core string) defaults {
	return defaults{
		core + "ServiceSpec": {
			"internalTrafficPolicy":    "Cluster",
			"publishNotReadyAddresses": false,
			"sessionAffinity":          "None",
			"type":                     "ClusterIP",
		},
		core + "ServicePort":                                          {"name": "", "protocol": "TCP", "targetPort": sibling("port")},
		core + "EndpointPort":                                         {"protocol": "TCP"},
		core + "Secret":                                               {"type": "Opaque"},
		core + "Namespace":                                            {"spec": defaulted()},
		core + "NamespaceSpec":                                        {"finalizers": []any{"kubernetes"}},
		"io.k8s.api.networking.v1.NetworkPolicySpec":                  {"podSelector": defaulted()},
		"io.k8s.api.networking.v1.NetworkPolicyPort":                  {"protocol": "TCP"},
		"io.k8s.api.storage.v1.StorageClass":                          {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
		"io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec":       {"minReplicas": int64(1)},
		"io.k8s.api.scheduling.v1.PriorityClass":                      {"globalDefault": false, "preemptionPolicy": "PreemptLowerPriority"},
		"io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration": {"lendablePercent": int64(0)},
	}
}

func appsDefaults(apps string) defaults {
	return defaults{
		apps + "DeploymentSpec": {
			"minReadySeconds":         int64(0),
			"paused":                  false,
			"progressDeadlineSeconds": int64(600),
			"replicas":                int64(1),
			"revisionHistoryLimit":    int64(10),
			"strategy":                defaulted(),
		},
		apps + "DeploymentStrategy":      {"rollingUpdate": onlyFor("RollingUpdate"), "type": "RollingUpdate"},
		apps + "RollingUpdateDeployment": {"maxSurge": "25%", "maxUnavailable": "25%"},
		apps + "ReplicaSetSpec":          {"minReadySeconds": int64(0), "replicas": int64(1)},
		apps + "StatefulSetSpec": {
			"minReadySeconds":                      int64(0),
			"persistentVolumeClaimRetentionPolicy": defaulted(),
			"podManagementPolicy":                  "OrderedReady",
			"replicas":                             int64(1),
			"revisionHistoryLimit":                 int64(10),
			"serviceName":                          "",
			"updateStrategy":                       defaulted(),
		},
		apps + "StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
		apps + "StatefulSetUpdateStrategy":                       {"rollingUpdate": onlyFor("RollingUpdate"), "type": "RollingUpdate"},
		apps + "RollingUpdateStatefulSetStrategy":                {"maxUnavailable": int64(1), "partition": int64(0)},
		apps + "DaemonSetSpec": {
			"minReadySeconds":      int64(0),
			"revisionHistoryLimit": int64(10),
			"updateStrategy":       defaulted(),
		},
		apps + "DaemonSetUpdateStrategy": {"rollingUpdate": onlyFor("RollingUpdate"), "type": "RollingUpdate"},
		apps + "RollingUpdateDaemonSet":  {"maxSurge": int64(0), "maxUnavailable": int64(1)},
	}
}

// onlyFor is an object that is defaulted if the strategy has the given type, or no type.
func onlyFor(strategy string) computed {
	return func(parent Parent) (any, bool) {
		is := parent.Value("type")
		return defaulted(), is == nil || is == strategy
	}
}

func batchDefaults(batch string) defaults {
	return defaults{
		batch + "JobSpec": {
			"backoffLimit":         int64(6),
			"completionMode":       "NonIndexed",
			"completions":          computed(completions),
			"manualSelector":       false,
			"parallelism":          int64(1),
			"podReplacementPolicy": "TerminatingOrFailed",
			"suspend":              false,
		},
		batch + "CronJobSpec": {
			"concurrencyPolicy":          "Allow",
			"failedJobsHistoryLimit":     int64(1),
			"successfulJobsHistoryLimit": int64(3),
			"suspend":                    false,
		},
	}
}

// completions is 1 for a Job without parallelism. With parallelism, the field stays absent.
func completions(job Parent) (any, bool) {
	return int64(1), job.Value("parallelism") == nil
}

func rbacDefaults(rbac string) defaults {
	const group = "rbac.authorization.k8s.io"
	return defaults{
		rbac + "RoleRef": {"apiGroup": group},
		rbac + "Subject": {
			"apiGroup": computed(func(subject Parent) (any, bool) {
				kind := subject.Value("kind")
				if kind == "ServiceAccount" {
					return "", true
				}
				return group, kind == "User" || kind == "Group"
			}),
			"namespace": "",
		},
	}
}

func webhookDefaults(admission string) defaults {
	webhook := map[string]any{
		"failurePolicy":     "Fail",
		"matchPolicy":       "Equivalent",
		"namespaceSelector": defaulted(),
		"objectSelector":    defaulted(),
		"timeoutSeconds":    int64(10),
	}
	mutating := maps.Clone(webhook)
	mutating["reinvocationPolicy"] = "Never"
	return defaults{
		admission + "ValidatingWebhook":   webhook,
		admission + "MutatingWebhook":     mutating,
		admission + "RuleWithOperations":  {"scope": "*"},
		admission + "ServiceReference":    {"port": int64(443)},
		admission + "WebhookClientConfig": {"caBundle": ""},
	}
}

func extraDefaults() defaults {
	return defaults{
		"CustomResourceDefinitionSpec": {"conversion": defaulted()},
		"CustomResourceConversion":     {"strategy": "None"},
		"ServiceReference":             {"port": int64(443)},
		"APIServiceReference":          {"port": int64(443)},
		"CustomResourceDefinitionNames": {
			"listKind": computed(func(names Parent) (any, bool) {
				kind, ok := names.Value("kind").(string)
				return kind + "List", ok
			}),
			"singular": computed(func(names Parent) (any, bool) {
				kind, ok := names.Value("kind").(string)
				return strings.ToLower(kind), ok
			}),
		},
	}
}
