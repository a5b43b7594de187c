/**
 * The configuration of injection that is installed with the mesh (`charts/meshd/files/injection.yaml`), and that `pilot-discovery inject` uses where none is
 * given. Its template runs the agent of this project with what that needs and nothing else (docs/injection.md, N12).
 */

/** The template `sidecar`. Every value of a pod is written as JSON, so that it is one value whatever its characters are. */
const sidecar = `{{- $global := .Values.global | default dict }}
{{- $proxy := $global.proxy | default dict }}
{{- $init := $global.proxy_init | default dict }}
{{- $cni := .Values.cni | default dict }}
{{- $cluster := $global.multiCluster | default dict }}
{{- $sts := $global.sts | default dict }}
{{- $logging := $global.logging | default dict }}
{{- $sidecar := printf "sidecar.%s/" .MeshDomain }}
{{- $traffic := printf "traffic.sidecar.%s/" .MeshDomain }}
{{- $ready := printf "readiness.status.sidecar.%s/" .MeshDomain }}
{{- $service := printf "service.%s/" .MeshDomain }}
{{- $topology := printf "topology.%s/network" .MeshDomain }}
{{- $mode := annotation .ObjectMeta (print $sidecar "interceptionMode") .ProxyConfig.InterceptionMode }}
{{- $status := annotation .ObjectMeta (printf "status.sidecar.%s/port" .MeshDomain) .ProxyConfig.StatusPort }}
{{- $network := index .ObjectMeta.Labels $topology | default $global.network | default "" }}
{{- $app := index .ObjectMeta.Labels "app.kubernetes.io/name" | default (index .ObjectMeta.Labels "app") | default .DeploymentMeta.Name }}
{{- $name := index .ObjectMeta.Labels (print $service "canonical-name") | default $app }}
{{- $version := index .ObjectMeta.Labels "app.kubernetes.io/version" | default (index .ObjectMeta.Labels "version") | default "latest" }}
{{- $revision := index .ObjectMeta.Labels (print $service "canonical-revision") | default $version }}
{{- $bind := eq (annotation .ObjectMeta (print $sidecar "capNetBindService") "false" | lower) "true" "t" "1" }}
{{- $dump := eq (annotation .ObjectMeta (print $sidecar "enableCoreDump") $proxy.enableCoreDump | lower) "true" "t" "1" }}
{{- if and $dump (not $proxy.enableCoreDump) (not $proxy.allowCoreDump) }}
{{- fail "core dumps need a privileged container: the value global.proxy.allowCoreDump permits them" }}
{{- end }}
{{- $containers := list }}
{{- $ports := list }}
{{- range .Spec.Containers }}
{{- if not (has .Name (list "mesh-proxy" "istio-proxy")) }}
{{- $containers = append $containers .Name }}
{{- range .Ports }}{{- $ports = append $ports . }}{{- end }}
{{- end }}
{{- end }}
metadata:
  labels:
    security.{{ .MeshDomain }}/tlsMode: mesh
    {{ $service }}canonical-name: {{ toJSON $name }}
    {{ $service }}canonical-revision: {{ toJSON $revision }}
    {{ .MeshDomain }}/rev: {{ toJSON (.Revision | default "default") }}
    {{- if $network }}
    {{ $topology }}: {{ toJSON $network }}
    {{- end }}
spec:
  initContainers:
  {{- if ne $mode "NONE" }}
  - name: {{ if $cni.enabled }}mesh-validation{{ else }}mesh-init{{ end }}
    image: {{ toJSON ($init.image | default .ProxyImage) }}
    {{- if $global.imagePullPolicy }}
    imagePullPolicy: {{ toJSON $global.imagePullPolicy }}
    {{- end }}
    workingDir: /
    args:
    - mesh-iptables
    - -p
    - "15001"
    - -z
    - "15006"
    - -u
    - {{ toJSON (toString .ProxyUID) }}
    - -m
    - {{ toJSON $mode }}
    - -i
    - {{ toJSON (annotation .ObjectMeta (print $traffic "includeOutboundIPRanges") ($proxy.includeIPRanges | default "*")) }}
    - -x
    - {{ toJSON (annotation .ObjectMeta (print $traffic "excludeOutboundIPRanges") ($proxy.excludeIPRanges | default "")) }}
    - -b
    - {{ toJSON (annotation .ObjectMeta (print $traffic "includeInboundPorts") ($proxy.includeInboundPorts | default "*")) }}
    - -d
    - {{ toJSON (excludeInboundPort $status (excludeInboundPort 15021 (excludeInboundPort 15090 (annotation .ObjectMeta (print $traffic "excludeInboundPorts") ($proxy.excludeInboundPorts | default ""))))) }}
    {{- with annotation .ObjectMeta (print $traffic "includeOutboundPorts") ($proxy.includeOutboundPorts | default "") }}
    - -q
    - {{ toJSON . }}
    {{- end }}
    {{- with annotation .ObjectMeta (print $traffic "excludeOutboundPorts") ($proxy.excludeOutboundPorts | default "") }}
    - -o
    - {{ toJSON . }}
    {{- end }}
    {{- with annotation .ObjectMeta (print $traffic "kubevirtInterfaces") "" }}
    - -k
    - {{ toJSON . }}
    {{- end }}
    {{- if $cni.enabled }}
    - --run-validation
    - --skip-rule-apply
    {{- end }}
    {{- with .ProxyConfig.ProxyMetadata }}
    env:
    {{- range $key, $value := . }}
    - name: {{ toJSON $key }}
      value: {{ toJSON $value }}
    {{- end }}
    {{- end }}
    resources: {{ toJSON ($init.resources | default $proxy.resources | default dict) }}
    securityContext:
      allowPrivilegeEscalation: false
      privileged: false
      seccompProfile:
        type: RuntimeDefault
      {{- if $cni.enabled }}
      runAsUser: {{ .ProxyUID }}
      runAsGroup: {{ .ProxyGID }}
      runAsNonRoot: true
      readOnlyRootFilesystem: true
      capabilities:
        drop: [ALL]
      {{- else }}
      runAsUser: 0
      runAsGroup: 0
      runAsNonRoot: false
      readOnlyRootFilesystem: false
      capabilities:
        drop: [ALL]
        add: [NET_ADMIN, NET_RAW]
      {{- end }}
  {{- end }}
  {{- if $dump }}
  - name: enable-core-dump
    image: {{ toJSON ($init.image | default .ProxyImage) }}
    command: [/bin/sh, -c, sysctl -w kernel.core_pattern=/var/lib/mesh/data/core.proxy && ulimit -c unlimited]
    securityContext:
      privileged: true
      runAsUser: 0
      runAsGroup: 0
      runAsNonRoot: false
  {{- end }}
  {{- if not .NativeSidecars }}
  containers:
  {{- end }}
  - name: mesh-proxy
    image: {{ toJSON .ProxyImage }}
    {{- if $global.imagePullPolicy }}
    imagePullPolicy: {{ toJSON $global.imagePullPolicy }}
    {{- end }}
    {{- if .NativeSidecars }}
    restartPolicy: Always
    {{- end }}
    workingDir: /
    args:
    - proxy
    - sidecar
    - --domain
    - $(POD_NAMESPACE).svc.{{ $proxy.clusterDomain | default "cluster.local" }}
    - --serviceCluster
    - {{ toJSON (printf "%s.%s" $app .ObjectMeta.Namespace) }}
    - --proxyLogLevel
    - {{ toJSON (annotation .ObjectMeta (print $sidecar "logLevel") ($proxy.logLevel | default "warning")) }}
    - --proxyComponentLogLevel
    - {{ toJSON (annotation .ObjectMeta (print $sidecar "componentLogLevel") ($proxy.componentLogLevel | default "misc:error")) }}
    - --log_output_level
    - {{ toJSON (annotation .ObjectMeta (print $sidecar "agentLogLevel") ($logging.level | default "default:info")) }}
    {{- if $global.logAsJson }}
    - --log_as_json
    {{- end }}
    {{- if $sts.servicePort }}
    - --stsPort
    - {{ toJSON (toString $sts.servicePort) }}
    {{- end }}
    {{- if gt .EstimatedConcurrency 0 }}
    - --concurrency
    - {{ toJSON (toString .EstimatedConcurrency) }}
    {{- end }}
    {{- if and .ProxyConfig.HoldApplicationUntilProxyStarts (not .NativeSidecars) }}
    lifecycle:
      postStart:
        exec:
          command: [pilot-agent, wait]
    {{- end }}
    ports:
    - name: http-envoy-prom
      containerPort: 15090
      protocol: TCP
    env:
    - name: JWT_POLICY
      value: {{ toJSON ($global.jwtPolicy | default "third-party-jwt") }}
    - name: PILOT_CERT_PROVIDER
      value: {{ toJSON ($global.pilotCertProvider | default "meshd") }}
    {{- with $global.caAddress }}
    - name: CA_ADDR
      value: {{ toJSON . }}
    {{- end }}
    - name: POD_NAME
      valueFrom: {fieldRef: {fieldPath: metadata.name}}
    - name: POD_NAMESPACE
      valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
    - name: INSTANCE_IP
      valueFrom: {fieldRef: {fieldPath: status.podIP}}
    - name: SERVICE_ACCOUNT
      valueFrom: {fieldRef: {fieldPath: spec.serviceAccountName}}
    - name: HOST_IP
      valueFrom: {fieldRef: {fieldPath: status.hostIP}}
    - name: CANONICAL_SERVICE
      value: {{ toJSON $name }}
    - name: CANONICAL_REVISION
      value: {{ toJSON $revision }}
    - name: PROXY_CONFIG
      value: {{ toJSON (protoToJSON .ProxyConfig) }}
    - name: TRUST_DOMAIN
      value: {{ toJSON .MeshConfig.TrustDomain }}
    - name: MESH_META_POD_PORTS
      value: {{ toJSON (toJSON $ports) }}
    - name: MESH_META_APP_CONTAINERS
      value: {{ toJSON (join "," $containers) }}
    - name: MESH_META_CLUSTER_ID
      value: {{ toJSON ($cluster.clusterName | default "Orchestrator") }}
    - name: MESH_META_INTERCEPTION_MODE
      value: {{ toJSON $mode }}
    {{- if $network }}
    - name: MESH_META_NETWORK
      value: {{ toJSON $network }}
    {{- end }}
    - name: MESH_META_WORKLOAD_NAME
      value: {{ toJSON .DeploymentMeta.Name }}
    - name: MESH_META_OWNER
      value: {{ toJSON (printf "kubernetes://apis/%s/namespaces/%s/%ss/%s" .TypeMeta.APIVersion .ObjectMeta.Namespace (lower .TypeMeta.Kind) .DeploymentMeta.Name) }}
    {{- with $global.meshID }}
    - name: MESH_META_MESH_ID
      value: {{ toJSON . }}
    {{- end }}
    {{- if isset .ObjectMeta.Annotations (print $sidecar "bootstrapOverride") }}
    - name: MESH_BOOTSTRAP_OVERRIDE
      value: /etc/mesh/custom-bootstrap/custom_bootstrap.json
    {{- end }}
    {{- range $key, $value := .ProxyConfig.ProxyMetadata }}
    - name: {{ toJSON $key }}
      value: {{ toJSON $value }}
    {{- end }}
    {{- if ne $status "0" }}
    readinessProbe:
      httpGet:
        path: /healthz/ready
        port: 15021
      initialDelaySeconds: {{ annotation .ObjectMeta (print $ready "initialDelaySeconds") ($proxy.readinessInitialDelaySeconds | default 1) }}
      periodSeconds: {{ annotation .ObjectMeta (print $ready "periodSeconds") ($proxy.readinessPeriodSeconds | default 2) }}
      timeoutSeconds: 3
      failureThreshold: {{ annotation .ObjectMeta (print $ready "failureThreshold") ($proxy.readinessFailureThreshold | default 30) }}
    {{- if .NativeSidecars }}
    startupProbe:
      httpGet:
        path: /healthz/ready
        port: 15021
      periodSeconds: 1
      timeoutSeconds: 3
      failureThreshold: 600
    {{- end }}
    {{- end }}
    {{- $cpu := annotation .ObjectMeta (print $sidecar "proxyCPU") "" }}
    {{- $memory := annotation .ObjectMeta (print $sidecar "proxyMemory") "" }}
    {{- $cpuLimit := annotation .ObjectMeta (print $sidecar "proxyCPULimit") "" }}
    {{- $memoryLimit := annotation .ObjectMeta (print $sidecar "proxyMemoryLimit") "" }}
    {{- if or $cpu $memory $cpuLimit $memoryLimit }}
    resources:
      {{- if or $cpu $memory }}
      requests:
        {{- if $cpu }}
        cpu: {{ toJSON $cpu }}
        {{- end }}
        {{- if $memory }}
        memory: {{ toJSON $memory }}
        {{- end }}
      {{- end }}
      {{- if or $cpuLimit $memoryLimit }}
      limits:
        {{- if $cpuLimit }}
        cpu: {{ toJSON $cpuLimit }}
        {{- end }}
        {{- if $memoryLimit }}
        memory: {{ toJSON $memoryLimit }}
        {{- end }}
      {{- end }}
    {{- else if $proxy.resources }}
    resources: {{ toJSON $proxy.resources }}
    {{- end }}
    securityContext:
      allowPrivilegeEscalation: false
      privileged: false
      readOnlyRootFilesystem: true
      seccompProfile:
        type: RuntimeDefault
      runAsGroup: {{ .ProxyGID }}
      {{- if eq $mode "TPROXY" }}
      runAsUser: 0
      runAsNonRoot: false
      {{- else }}
      runAsUser: {{ .ProxyUID }}
      runAsNonRoot: true
      {{- end }}
      capabilities:
        drop: [ALL]
        {{- if or (eq $mode "TPROXY") $bind }}
        add:
        {{- if eq $mode "TPROXY" }}
        - NET_ADMIN
        {{- end }}
        {{- if $bind }}
        - NET_BIND_SERVICE
        {{- end }}
        {{- end }}
    volumeMounts:
    - name: mesh-envoy
      mountPath: /etc/mesh/proxy
    - name: mesh-data
      mountPath: /var/lib/mesh/data
    - name: mesh-podinfo
      mountPath: /etc/mesh/pod
    {{- if eq ($global.jwtPolicy | default "third-party-jwt") "third-party-jwt" }}
    - name: mesh-token
      mountPath: /var/run/secrets/tokens
      readOnly: true
    {{- end }}
    {{- if eq ($global.pilotCertProvider | default "meshd") "meshd" }}
    - name: meshd-ca-cert
      mountPath: /var/run/secrets/mesh
      readOnly: true
    {{- end }}
    {{- if isset .ObjectMeta.Annotations (print $sidecar "bootstrapOverride") }}
    - name: custom-bootstrap-volume
      mountPath: /etc/mesh/custom-bootstrap
      readOnly: true
    {{- end }}
    {{- range $key, $value := fromJSON (annotation .ObjectMeta (print $sidecar "userVolumeMount") "{}") }}
    - name: {{ toJSON $key }}
      {{- range $field, $given := pick $value "mountPath" "readOnly" "subPath" "subPathExpr" "mountPropagation" }}
      {{ $field }}: {{ toJSON $given }}
      {{- end }}
    {{- end }}
  volumes:
  - name: mesh-envoy
    emptyDir:
      medium: Memory
  - name: mesh-data
    emptyDir: {}
  - name: mesh-podinfo
    downwardAPI:
      items:
      - path: labels
        fieldRef:
          fieldPath: metadata.labels
      - path: annotations
        fieldRef:
          fieldPath: metadata.annotations
  {{- if eq ($global.jwtPolicy | default "third-party-jwt") "third-party-jwt" }}
  - name: mesh-token
    projected:
      sources:
      - serviceAccountToken:
          path: mesh-token
          expirationSeconds: 43200
          audience: {{ toJSON ($global.tokenAudience | default "mesh-ca") }}
  {{- end }}
  {{- if eq ($global.pilotCertProvider | default "meshd") "meshd" }}
  - name: meshd-ca-cert
    configMap:
      name: mesh-ca-root-cert
  {{- end }}
  {{- if isset .ObjectMeta.Annotations (print $sidecar "bootstrapOverride") }}
  - name: custom-bootstrap-volume
    configMap:
      name: {{ toJSON (annotation .ObjectMeta (print $sidecar "bootstrapOverride") "") }}
  {{- end }}
  {{- range $key, $value := fromJSON (annotation .ObjectMeta (print $sidecar "userVolume") "{}") }}
  - name: {{ toJSON $key }}
    {{- range $field, $given := omit $value "name" }}
    {{ toJSON $field }}: {{ toJSON $given }}
    {{- end }}
  {{- end }}
  {{- with $global.imagePullSecrets }}
  imagePullSecrets:
  {{- range . }}
  - name: {{ toJSON . }}
  {{- end }}
  {{- end }}
`

/** The key `config`, as data: `npm run tables` writes it into the chart. */
export const defaultConfig = {
  policy: 'enabled',
  defaultTemplates: ['sidecar'],
  neverInjectSelector: [],
  alwaysInjectSelector: [],
  injectedAnnotations: {},
  aliases: {},
  templates: { sidecar },
}

/** The key `values`. */
export const defaultValues = {
  global: {
    proxy: { image: 'mesh/pilot-agent', resources: { requests: { cpu: '100m', memory: '128Mi' }, limits: { memory: '1Gi' } } },
  },
}
