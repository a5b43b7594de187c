/** The flags and arguments of the commands that ask a running server. */
import { string } from '@oclif/core/args'
import { userClusterFlags } from './cluster-flags.ts'
import { list, text, texts, toggle, uint16 } from './flags.ts'

/** The flags that name the mesh of a cluster. */
export const meshClusterFlags = {
  cluster: toggle({ description: 'asks the mesh of a cluster, through its API server and with your rights there' }),
  ...userClusterFlags,
  meshNamespace: text({ default: 'mesh-system', description: 'namespace of the control plane in the cluster' }),
  revision: text({ default: '', description: 'revision of the control plane in the cluster; needed where there are several' }),
  replica: text({ default: '', description: 'pod of discovery that is asked, by a part of its name; the first that answers when not given' }),
}

/** Flags of all of them. */
export const serverFlags = {
  address: text({
    default: '',
    description:
      'server that is asked: <host>:<port> of --httpAddr or --monitoringAddr, or https://<host>:<port> of --secureGRPCAddr; the admin socket of this machine (MESHD_ADMIN_SOCKET) when not given',
  }),
  'token-file': text({ value: 'file', default: '', description: 'file with a token of the mesh, which is sent to --address' }),
  'ca-file': text({
    value: 'file',
    default: '',
    description: 'file with the roots that the certificate of an https --address may come from; those of the system when not given',
  }),
  ...meshClusterFlags,
  json: toggle({ description: 'prints the answer as JSON, and errors too' }),
}

/** Flags of `proxy-status`. */
export const proxyStatusFlags = {
  ...serverFlags,
  namespace: text({ value: 'namespace', char: 'n', default: '', description: 'only proxies of this namespace' }),
}

/** Flags of `proxy-config`. */
export const proxyConfigFlags = {
  ...serverFlags,
  name: text({ default: '', description: 'only resources whose names contain this text' }),
  envoy: text({
    default: '',
    description:
      "<host>:<port> of the admin interface of the proxy's Envoy: what it has is compared with what it was sent, and the exit status is 1 if they differ",
  }),
}

/** Flags of `proxy-config bootstrap`. */
export const proxyBootstrapFlags = {
  ...serverFlags,
  envoy: text({
    default: '',
    description: "<host>:<port> of the admin interface of the proxy's Envoy, whose bootstrap is shown; what the proxy told of itself when not given",
  }),
}

/** Flags of `sidecar-scope`. */
export const sidecarScopeFlags = {
  ...serverFlags,
  envoy: text({ default: '', description: "<host>:<port> of the admin interface of the proxy's Envoy, whose statistics show what it uses" }),
  selector: list({
    default: [],
    description:
      'label of the workloads that the Sidecar selects, <name>=<value>; may be repeated; those of the proxy that name its application when not given',
  }),
}

/** Flags of `diff`. */
export const diffFlags = {
  ...serverFlags,
  namespace: text({
    char: 'n',
    default: '',
    description:
      'namespace of objects that name none; default when not given, but not for policies where the configuration of the mesh is in files: they need one',
  }),
  replace: toggle({
    description:
      'the files are all configuration that there is: objects of other places would be removed, but services and workloads of clusters stay',
  }),
}

/** The argument of `diff`. */
export const diffArgs = {
  path: string({ description: 'file or directory, or - for standard input; there may be several', required: true, ignoreStdin: true }),
}

/** Flags of `push watch`. */
export const pushWatchFlags = {
  ...serverFlags,
  namespace: text({ value: 'namespace', char: 'n', default: '', description: 'only proxies and objects of this namespace' }),
  past: toggle({ description: 'begins with the pushes that the server keeps: the last 100' }),
  json: toggle({ description: 'prints each push as JSON on a line of its own, and errors as JSON' }),
}

/** Flags of `authz`: the parts of the request. */
export const authzFlags = {
  ...serverFlags,
  protocol: text({ value: 'http|tcp', default: 'http', description: 'http or tcp' }),
  method: text({ value: 'GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS', default: 'GET', description: 'method of the request' }),
  host: text({ default: '', description: 'host of the request' }),
  path: text({ default: '/', description: 'path of the request' }),
  header: texts({ value: 'name:value', default: [], description: 'header of the request, <name>:<value>; may be repeated' }),
  principal: text({ default: '', description: "SPIFFE ID of the client's certificate; the request is in plain text when not given" }),
  claims: text({ default: '', description: 'claims of an accepted token, as JSON; there is none when not given' }),
  'source-ip': text({ default: '', description: 'address of the peer' }),
  'remote-ip': text({ default: '', description: 'address of the client on whose behalf the peer connects; that of the peer when not given' }),
  port: uint16({ default: 0, range: [0, 65_535], description: 'port of the workload' }),
  sni: text({ default: '', description: 'server name of the TLS connection' }),
}

/** Flags of `explain`: the type of a resource, or parts of a request. */
export const explainFlags = {
  ...serverFlags,
  type: text({
    value: 'cds|eds|lds|rds|vhds',
    default: '',
    description: 'type of the resource that is asked about: cds, eds, lds, rds or vhds; cds for a name with a bar, and else a request is meant',
  }),
  method: text({ value: 'GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS', default: 'GET', description: 'method of the request' }),
  header: texts({
    value: 'name:value',
    default: [],
    description: 'header of the request, <name>:<value>; may be repeated; host replaces the host of the URL, but not the server name of TLS',
  }),
  sni: text({ default: '', description: 'server name of the TLS connection; the host of the URL when not given' }),
  'source-ip': text({ default: '', description: 'address of the client of a gateway, for its policies on ipBlocks' }),
}

const whichProxy = 'its name <pod>.<namespace>, or any part of its name or node id that no other proxy has'

/** The argument that names a proxy. */
export const proxyArgument = string({ description: whichProxy, required: true, ignoreStdin: true })

/** The argument that may name a proxy. */
export const maybeProxyArgument = string({ description: `only this proxy, in detail: ${whichProxy}`, ignoreStdin: true })

/** The argument that names what `explain` explains. */
export const targetArgument = string({
  description: 'a host or URL that the workload of the proxy, or a client of the gateway, sends a request to; or the name of a resource',
  required: true,
  ignoreStdin: true,
})
