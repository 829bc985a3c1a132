{{- define "foghorn.labels" -}}
app.kubernetes.io/name: foghorn
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
