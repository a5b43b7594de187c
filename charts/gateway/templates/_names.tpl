{{- define "gateway.name" -}}{{ .Values.name | default .Release.Name }}{{- end }}

{{- /* By what its objects find its pods: a selector of a Deployment cannot be changed, and labels of pods can. */ -}}
{{- define "gateway.selector" -}}
app: {{ include "gateway.name" . }}
{{- end }}

{{- define "gateway.labels" -}}
app: {{ include "gateway.name" . }}
{{- if not (hasKey .Values.labels "mesh") }}
mesh: {{ include "gateway.name" . | trimPrefix "mesh-" }}
{{- end }}
{{- with omit .Values.labels "app" }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gateway.field" -}}
{name: {{ index . 0 }}, valueFrom: {fieldRef: {fieldPath: {{ index . 1 }}}}}
{{- end }}
