{{- define "labels" -}}
app.kubernetes.io/name: stackrox
app.kubernetes.io/instance: {{ .Release.Name }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
