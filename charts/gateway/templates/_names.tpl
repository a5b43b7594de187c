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

{{- /* The labels of pods: those of the chart and of the value labels, and the value podLabels, which must not change them: selectors and injection go by them. */ -}}
{{- define "gateway.podLabels" -}}
{{- $labels := include "gateway.labels" . | fromYaml }}
{{- if ne (get $labels "sidecar.mesh.io/inject" | default "false") "false" }}
{{- fail "labels: the chart sets sidecar.mesh.io/inject to \"false\"" }}
{{- end }}
{{- $_ := set $labels "sidecar.mesh.io/inject" "false" }}
{{- range $key, $value := .Values.podLabels }}
{{- if ne (get $labels $key | default $value) $value }}
{{- fail (printf "podLabels: the chart sets %s to %q" $key (get $labels $key)) }}
{{- end }}
{{- end }}
{{- merge $labels (.Values.podLabels | default dict) | toYaml }}
{{- end }}

{{- define "gateway.field" -}}
{name: {{ index . 0 }}, valueFrom: {fieldRef: {fieldPath: {{ index . 1 }}}}}
{{- end }}

{{- /* A value as text. Helm holds whole numbers as floating-point ones, and writes large ones as 1e+06. */ -}}
{{- define "gateway.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}
