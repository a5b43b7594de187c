{{- /* A role with the rules of a template, and the binding that gives it to the account of discovery. */ -}}
{{- define "meshd.role" }}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  name: {{ .name }}
  {{- if eq .kind "Role" }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  labels: {{- include "meshd.labels" .root | nindent 4 }}
rules:
  {{- include .rules .root | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  name: {{ .name }}
  {{- if eq .kind "Role" }}
  namespace: {{ .root.Release.Namespace }}
  {{- end }}
  labels: {{- include "meshd.labels" .root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ include "meshd.name" .root }}
    namespace: {{ .root.Release.Namespace }}
{{- end }}
