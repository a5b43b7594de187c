{{- /* What discovery may do: made by npm run tables from src/orchestrator/access.ts. groups: those of the kinds, in both spellings. */ -}}
{{- define "meshd.clusterRules" -}}
- apiGroups:
    - ""
  resources:
    - namespaces
    - nodes
    - services
    - pods
    - endpoints
    - secrets
  verbs:
    - list
    - watch
- apiGroups:
    - discovery.k8s.io
  resources:
    - endpointslices
  verbs:
    - list
    - watch
- apiGroups:
    - networking.k8s.io
  resources:
    - ingresses
    - ingressclasses
  verbs:
    - list
    - watch
- apiGroups:
    - networking.k8s.io
  resources:
    - ingresses/status
  verbs:
    - patch
- apiGroups:
    - apiextensions.k8s.io
  resources:
    - customresourcedefinitions
  verbs:
    - list
    - watch
- apiGroups:
    - ""
  resources:
    - configmaps
  verbs:
    - list
    - watch
    - create
    - patch
  resourceNames:
    - mesh-ca-root-cert
- apiGroups:
    - authentication.k8s.io
  resources:
    - tokenreviews
  verbs:
    - create
- apiGroups:
    - authorization.k8s.io
  resources:
    - subjectaccessreviews
  verbs:
    - create
- apiGroups:
    - admissionregistration.k8s.io
  resources:
    - mutatingwebhookconfigurations
  verbs:
    - list
    - watch
    - patch
- apiGroups:
    - admissionregistration.k8s.io
  resources:
    - validatingwebhookconfigurations
  verbs:
    - get
    - patch
  resourceNames:
    - meshd{{ include "meshd.suffix" . }}-{{ .Release.Namespace }}
- apiGroups:
    - networking.mesh.io
    - networking.istio.io
    - security.mesh.io
    - security.istio.io
    - telemetry.mesh.io
    - telemetry.istio.io
    - extensions.mesh.io
    - extensions.istio.io
  resources:
    - virtualservices
    - destinationrules
    - gateways
    - serviceentries
    - workloadentries
    - workloadgroups
    - sidecars
    - envoyfilters
    - authorizationpolicies
    - requestauthentications
    - peerauthentications
    - telemetries
    - proxyconfigs
    - wasmplugins
    - trafficextensions
  verbs:
    - list
    - watch
{{- end }}

{{- define "meshd.rules" -}}
- apiGroups:
    - ""
  resources:
    - configmaps
  verbs:
    - list
    - watch
  resourceNames:
    - mesh{{ include "meshd.suffix" . }}
    - istio{{ include "meshd.suffix" . }}
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - create
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - get
    - update
  resourceNames:
    - mesh-ca-secret
    - mesh-ca-state
    - mesh-ca-clock
    - mesh-ca-ledger
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - get
    - update
  resourceNames:
    - mesh-ca-ledger-a0
    - mesh-ca-ledger-a1
    - mesh-ca-ledger-a2
    - mesh-ca-ledger-a3
    - mesh-ca-ledger-a4
    - mesh-ca-ledger-a5
    - mesh-ca-ledger-a6
    - mesh-ca-ledger-a7
    - mesh-ca-ledger-a8
    - mesh-ca-ledger-a9
    - mesh-ca-ledger-a10
    - mesh-ca-ledger-a11
    - mesh-ca-ledger-b0
    - mesh-ca-ledger-b1
    - mesh-ca-ledger-b2
    - mesh-ca-ledger-b3
    - mesh-ca-ledger-b4
    - mesh-ca-ledger-b5
    - mesh-ca-ledger-b6
    - mesh-ca-ledger-b7
    - mesh-ca-ledger-b8
    - mesh-ca-ledger-b9
    - mesh-ca-ledger-b10
    - mesh-ca-ledger-b11
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - get
  resourceNames:
    - cacerts
    - istio-ca-secret
    - mesh-version-secrets
- apiGroups:
    - ""
  resources:
    - configmaps
  verbs:
    - list
    - watch
  resourceNames:
    - mesh-sidecar-injector{{ include "meshd.suffix" . }}
    - istio-sidecar-injector{{ include "meshd.suffix" . }}
- apiGroups:
    - networking.mesh.io
  resources:
    - gateways
  verbs:
    - create
- apiGroups:
    - networking.istio.io
  resources:
    - gateways
  verbs:
    - create
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - get
    - create
    - update
    - delete
    - list
    - watch
{{- end }}

{{- define "meshd.signerClusterRules" -}}
- apiGroups:
    - certificates.k8s.io
  resources:
    - certificatesigningrequests
  verbs:
    - create
    - get
    - list
    - delete
- apiGroups:
    - certificates.k8s.io
  resources:
    - certificatesigningrequests/approval
  verbs:
    - update
- apiGroups:
    - certificates.k8s.io
  resources:
    - signers
  verbs:
    - approve
  resourceNames:
    - {{ .Values.signer | quote }}
{{- end }}

{{- define "meshd.signerRules" -}}
- apiGroups:
    - ""
  resources:
    - secrets
  verbs:
    - get
    - create
    - update
{{- end }}

{{- define "meshd.statusClusterRules" -}}
- apiGroups:
    - networking.mesh.io
    - networking.istio.io
    - security.mesh.io
    - security.istio.io
    - telemetry.mesh.io
    - telemetry.istio.io
    - extensions.mesh.io
    - extensions.istio.io
  resources:
    - virtualservices/status
    - destinationrules/status
    - gateways/status
    - serviceentries/status
    - workloadentries/status
    - workloadgroups/status
    - sidecars/status
    - envoyfilters/status
    - authorizationpolicies/status
    - requestauthentications/status
    - peerauthentications/status
    - telemetries/status
    - proxyconfigs/status
    - wasmplugins/status
    - trafficextensions/status
  verbs:
    - patch
{{- end }}

{{- define "meshd.registrationClusterRules" -}}
- apiGroups:
    - networking.mesh.io
  resources:
    - workloadentries
  verbs:
    - create
    - patch
    - delete
- apiGroups:
    - networking.mesh.io
  resources:
    - workloadentries/status
  verbs:
    - patch
- apiGroups:
    - networking.istio.io
  resources:
    - workloadentries
  verbs:
    - create
    - patch
    - delete
- apiGroups:
    - networking.istio.io
  resources:
    - workloadentries/status
  verbs:
    - patch
{{- end }}

{{- define "meshd.registrationRules" -}}
- apiGroups:
    - coordination.k8s.io
  resources:
    - leases
  verbs:
    - delete
{{- end }}

{{- define "meshd.groups" -}}
- networking.mesh.io
- networking.istio.io
- security.mesh.io
- security.istio.io
- telemetry.mesh.io
- telemetry.istio.io
- extensions.mesh.io
- extensions.istio.io
{{- end }}
