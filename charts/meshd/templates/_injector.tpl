{{- /*
  The webhooks of a MutatingWebhookConfiguration of injection, in both spellings of labels. One that both spellings would select is asked once: the
  alias counts where the mesh form is absent. service, namespace: where discovery is. names: the revision or tag that namespaces and pods name.
  isDefault: whether those who name none are served too.
*/ -}}
{{- define "injector.webhooks" -}}
{{- $mesh := dict "injection" "mesh-injection" "rev" "mesh.io/rev" "inject" "sidecar.mesh.io/inject" "part" "" "isAlias" false }}
{{- $alias := dict "injection" "istio-injection" "rev" "istio.io/rev" "inject" "sidecar.istio.io/inject" "part" "alias." "isAlias" true }}
{{- $absent := "{key: %s, operator: DoesNotExist}" }}
{{- $is := "{key: %s, operator: In, values: [%q]}" }}
{{- /* Namespaces of the orchestrator are never asked about: their pods must start while discovery does not run. */}}
{{- $others := "{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system, kube-public, kube-node-lease, local-path-storage]}" }}
{{- $notRefused := list "{key: sidecar.mesh.io/inject, operator: NotIn, values: [\"false\"]}" "{key: sidecar.istio.io/inject, operator: NotIn, values: [\"false\"]}" }}
{{- $noRevision := list (printf $absent "mesh.io/rev") (printf $absent "istio.io/rev") }}
{{- $noInjection := list (printf $absent "mesh-injection") (printf $absent "istio-injection") }}
{{- $unlabelled := concat (list $others) $noInjection $noRevision }}
{{- $webhook := dict "service" .service "namespace" .namespace }}
{{- range $each := list $mesh $alias }}
{{- /* What the mesh form of a label must not say where the alias counts. */}}
{{- $noMeshInjection := ternary (list (printf $absent "mesh-injection")) list $each.isAlias }}
{{- $noMeshRevision := ternary (list (printf $absent "mesh.io/rev")) list $each.isAlias }}
{{- $noMeshInject := ternary (list (printf $absent "sidecar.mesh.io/inject")) list $each.isAlias }}
{{- if $.isDefault }}
{{- $namespaces := concat (list $others (printf $is $each.injection "enabled")) $noMeshInjection }}
{{- include "injector.webhook" (merge (dict "name" (printf "namespace.%s" $each.part) "namespaces" $namespaces "pods" $notRefused) $webhook) }}
{{- $pods := concat (list (printf $is $each.inject "true")) $noMeshInject $notRefused $noRevision }}
{{- include "injector.webhook" (merge (dict "name" (printf "object.%s" $each.part) "namespaces" $unlabelled "pods" $pods) $webhook) }}
{{- end }}
{{- $namespaces := concat (list $others (printf $is $each.rev $.names)) $noMeshRevision $noInjection }}
{{- include "injector.webhook" (merge (dict "name" (printf "rev.namespace.%s" $each.part) "namespaces" $namespaces "pods" $notRefused) $webhook) }}
{{- $pods := concat (list (printf $is $each.rev $.names)) $noMeshRevision $notRefused }}
{{- include "injector.webhook" (merge (dict "name" (printf "rev.object.%s" $each.part) "namespaces" $unlabelled "pods" $pods) $webhook) }}
{{- end }}
{{- end }}

{{- define "injector.webhook" }}
  - name: {{ .name }}sidecar-injector.mesh.io
    admissionReviewVersions: [v1, v1beta1]
    clientConfig: {service: {name: {{ .service }}, namespace: {{ .namespace }}, path: /inject, port: 443}}
    failurePolicy: Fail
    sideEffects: None
    timeoutSeconds: 10
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods], scope: Namespaced}]
    namespaceSelector:
      matchExpressions:
        {{- range .namespaces }}
        - {{ . }}
        {{- end }}
    objectSelector:
      matchExpressions:
        {{- range .pods }}
        - {{ . }}
        {{- end }}
{{- end }}
