{{- /* The revision as labels name it. */ -}}
{{- define "meshd.revision" -}}{{ .Values.revision | default "default" }}{{- end }}

{{- /* What the names of a revision's objects end in. */ -}}
{{- define "meshd.suffix" -}}{{ if not (has .Values.revision (list "" "default")) }}-{{ .Values.revision }}{{ end }}{{- end }}

{{- /* The same for objects that belong to no namespace. */ -}}
{{- define "meshd.wideSuffix" -}}{{ include "meshd.suffix" . }}{{ if ne .Release.Namespace "mesh-system" }}-{{ .Release.Namespace }}{{ end }}{{- end }}

{{- define "meshd.name" -}}meshd{{ include "meshd.suffix" . }}{{- end }}

{{- /* Whether this revision serves those who name none: "true" or empty. */ -}}
{{- define "meshd.isDefault" -}}
{{- if kindIs "bool" .Values.defaultRevision }}{{ if .Values.defaultRevision }}true{{ end }}{{ else if eq (include "meshd.suffix" .) "" }}true{{ end }}
{{- end }}

{{- define "meshd.labels" -}}
app: meshd
mesh.io/rev: {{ include "meshd.revision" . | quote }}
{{- end }}

{{- /* A value as text. Helm holds whole numbers as floating-point ones, and writes large ones as 1e+06. */ -}}
{{- define "meshd.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ printf "%.0f" . }}{{ else }}{{ toString . }}{{ end }}
{{- end }}

{{- /*
  The labels of pods: those of the chart, and the value podLabels, which must not change them, since selectors and injection go by them. A replica starts without
  a sidecar, which would need it.
*/ -}}
{{- define "meshd.podLabels" -}}
{{- $labels := merge (dict "sidecar.mesh.io/inject" "false") (include "meshd.labels" . | fromYaml) }}
{{- range $key, $value := .Values.podLabels }}
{{- if ne (get $labels $key | default $value) $value }}
{{- fail (printf "podLabels: the chart sets %s to %q" $key (get $labels $key)) }}
{{- end }}
{{- end }}
{{- merge $labels (.Values.podLabels | default dict) | toYaml }}
{{- end }}
