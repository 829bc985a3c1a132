{{- /* The code knows its namespace: policies, webhooks and certificates name it. */}}
{{- define "penstock.namespace" }}
{{- if ne .Release.Namespace "penstock-system" }}
{{- fail (printf "the namespace is %s: Penstock is installed in penstock-system (helm install --namespace penstock-system --create-namespace)" .Release.Namespace) }}
{{- end }}
{{- .Release.Namespace }}
{{- end }}

{{- define "penstock.image" }}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* Everything of monitoring has these. */}}
{{- define "penstock.monitoring.labels" }}
{{- toYaml (merge (dict "app.kubernetes.io/name" "penstock") .Values.monitoring.labels) }}
{{- end }}
