/**
 * How the agent connects to discovery and its certificate authority: addresses, and the files of tokens, roots and client certificates
 * (docs/certificates.md, N4 and N5).
 */
import type { PairFiles, RootsSource, ServerAddress, ServerConnection } from '../../protocols/messages/credentials.ts'
import type { AgentFeatures } from '../config/agent-features.ts'
import { canonicalCloudName, canonicalEnvironment } from '../names/mesh-names.ts'

/** The server name that the discovery service's certificate is verified against when discovery is called on localhost. */
const discoveryName = 'meshd.mesh-system.svc'
/** The server name that a separate certificate authority's certificate is verified against (any host with `citadel` in it). */
const ownAuthorityName = 'mesh-citadel'
const plainPort = 15010

type Texts = Readonly<Record<string, string | undefined>>

const tokenFiles: Readonly<Record<string, string>> = {
  'third-party-jwt': './var/run/secrets/tokens/mesh-token',
  'first-party-jwt': '/var/run/secrets/kubernetes.io/serviceaccount/token',
}

/** Directory of the certificate files that an operator mounts instead of using an authority. */
export const mountedCertificates = './etc/certs'
const mountedRoots = `${mountedCertificates}/root-cert.pem`
const orchestratorRoots = './var/run/secrets/kubernetes.io/serviceaccount/ca.crt'
/** The file of roots that an orchestrator or an operator mounts. */
export const defaultRoots = './var/run/secrets/mesh/root-cert.pem'

/** The value of `CA_ROOT_CA` and `XDS_ROOT_CA` that selects the roots of the system. */
const systemRoots = 'SYSTEM'

/** The fields of the proxy's configuration that decide how discovery is called. */
export interface DiscoverySettings {
  /** `<host>:<port>`. */
  readonly discoveryAddress: string
  /** `NONE` for plaintext. */
  readonly controlPlaneAuthPolicy: string
  readonly proxyMetadata: Readonly<Record<string, string>>
}

/** Returns the token file that `JWT_POLICY` selects. Undefined when no token is sent. */
export function tokenFile({ JWT_POLICY: policy }: AgentFeatures): string | undefined {
  return Object.hasOwn(tokenFiles, policy) ? tokenFiles[policy] : undefined
}

/** Returns the directory for secrets that survive a restart of the agent. Undefined when nothing is stored. */
export function keptIn(features: AgentFeatures): string | undefined {
  const directory = features.MESH_AGENT_STATE_DIR
  return directory === '' ? undefined : `${directory}/secrets`
}

/** The value of `CA_PROVIDER` that selects a cloud's certificate service, the domain of its addresses, and its default address. */
const cloudProvider = 'CloudCA'
const cloudDomain = 'googleapis.com'
const cloudAddress = `meshca.${cloudDomain}:443`

/** Whether certificates come from the certificate service of a cloud (docs/certificates.md, N8). */
export const isCloudAuthority = ({ CA_PROVIDER: provider, CA_ADDR: address }: AgentFeatures): boolean =>
  canonicalCloudName(provider) === cloudProvider || address.includes(cloudDomain)

function cloudConnection(features: AgentFeatures): ServerConnection {
  const { CA_ADDR: given, CA_ROOT_CA: pinned } = features
  const files = pinned === '' || pinned === systemRoots ? undefined : [pinned]
  return {
    address: serverAddress('environment variable CA_ADDR', given || cloudAddress),
    credentials: { roots: { files, isPinned: true, learned: undefined }, tokenFile: tokenFile(features), pair: undefined },
  }
}

/** Returns how the certificate authority is called. Throws an Error that names the variable when the address is invalid. */
export function authorityConnection(features: AgentFeatures, discoveryAddress: string): ServerConnection {
  if (isCloudAuthority(features)) return cloudConnection(features)
  const { CA_ADDR: given, CA_ROOT_CA: pinned, PROV_CERT: provisioned } = features
  const address = given || discoveryAddress
  const files = orchestrated(features)
    ? [orchestratorRoots]
    : features.PILOT_CERT_PROVIDER === 'custom'
      ? [mountedRoots]
      : [provisioned === '' ? defaultRoots : `${provisioned}/root-cert.pem`]
  const found = serverAddress(given ? 'environment variable CA_ADDR' : 'discovery address', address)
  return {
    address: found.host.includes('citadel') ? { ...found, serverName: ownAuthorityName } : found,
    credentials: { roots: rootsSource(features, pinned, files), tokenFile: tokenFile(features), pair: provisionedPair(features) },
  }
}

/** Returns how discovery is called: with `CALL_CREDENTIALS` by a token alone. Throws an Error when the address is invalid. */
export function discoveryConnection(features: AgentFeatures, proxy: DiscoverySettings): ServerConnection {
  const mounted = features.FILE_MOUNTED_CERTS
  const given = canonicalEnvironment(proxy.proxyMetadata)
  const root = mounted ? given.MESH_META_TLS_CLIENT_ROOT_CERT : ''
  const otherwise = orchestrated(features)
    ? orchestratorRoots
    : features.PROV_CERT === ''
      ? root || defaultRoots
      : `${features.PROV_CERT}/root-cert.pem`
  const address = serverAddress('discovery address', proxy.discoveryAddress)
  return {
    address: { ...address, isPlain: address.isPlain || proxy.controlPlaneAuthPolicy === 'NONE' },
    credentials: {
      roots: rootsSource(features, features.XDS_ROOT_CA, [mountedRoots, otherwise]),
      tokenFile: mounted ? undefined : tokenFile(features),
      pair: features.CALL_CREDENTIALS ? undefined : mounted ? mountedPair(given) : provisionedPair(features),
    },
  }
}

/** Parses `<host>:<port>`. Throws an Error that begins with `what` when the text has another form. */
function serverAddress(what: string, address: string): ServerAddress {
  const [, host = '', digits] = /^(.+):(\d{1,5})$/.exec(address) ?? []
  const port = Number(digits)
  if (!(port >= 1 && port <= 65_535)) throw new Error(`${what}: ${JSON.stringify(address.slice(0, 200))} is not <host>:<port>`)
  const name = host.replace(/^\[|\]$/g, '')
  return { host: name, port, isPlain: port === plainPort, serverName: name.includes('localhost') ? discoveryName : name }
}

/** Whether the roots are the ones that the orchestrator mounts into every workload. `kubernetes` is the value that the reference uses. */
const orchestrated = ({ PILOT_CERT_PROVIDER: provider }: AgentFeatures): boolean => provider === 'orchestrator' || provider === 'kubernetes'

function rootsSource(features: AgentFeatures, pinned: string, files: readonly string[]): RootsSource {
  const kept = keptIn(features)
  return {
    files: pinned === systemRoots ? undefined : pinned === '' ? files : [pinned],
    isPinned: pinned !== '',
    learned: pinned !== '' || kept === undefined ? undefined : `${kept}/root-cert.pem`,
  }
}

function mountedPair({ MESH_META_TLS_CLIENT_CERT_CHAIN: chain, MESH_META_TLS_CLIENT_KEY: key }: Texts): PairFiles | undefined {
  return chain && key ? { chain, key } : undefined
}

function provisionedPair({ PROV_CERT: directory }: AgentFeatures): PairFiles | undefined {
  return directory === '' ? undefined : { chain: `${directory}/cert-chain.pem`, key: `${directory}/key.pem` }
}
