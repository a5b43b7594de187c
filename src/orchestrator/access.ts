/**
 * What discovery does in a cluster, and so what its role permits (docs/operation.md, M1). The rules of the chart `meshd` are made from this, and calls and
 * watches that are not declared here are refused before they are sent.
 */
import { kinds } from '../config/kinds.ts'
import { groupSpellings } from '../names/mesh-names.ts'
import { noteSecret, secretNames } from '../names/secret-names.ts'
import { injectorNames } from './injector-object.ts'
import { settingsNames } from './settings-object.ts'

/** A verb of RBAC rules. */
export type AccessVerb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** A verb that is not a call: the API server asks whether an approver may approve requests to a signer. */
type PermissionVerb = 'approve'

/** What is done with a resource. */
export interface Access {
  /** The plural name of the resource, with its subresource: `ingresses/status`. */
  readonly resource: string
  /** The API group; empty: the core group. */
  readonly group: string
  readonly verbs: readonly (AccessVerb | PermissionVerb)[]
  /** In all namespaces, or in that of the control plane only. */
  readonly where: 'cluster' | 'control plane'
  /** The only objects that may be used. */
  readonly names?: readonly string[]
  /** What is done with it. */
  readonly why: string
}

const follow = ['list', 'watch'] as const

const { root, state, pluggedIn, formerRoot, versions } = secretNames
const ledgerParts = ['a', 'b'].flatMap((turn) => Array.from({ length: 12 }, (_, part) => noteSecret(`ledger-${turn}${part}`)))

const core = ''
const mine = 'control plane'
const everywhere = 'cluster'

/** Access to what is not a kind of the mesh. */
const fixed: readonly Access[] = [
  { resource: 'namespaces', group: core, verbs: follow, where: everywhere, why: 'their labels and their end' },
  { resource: 'nodes', group: core, verbs: follow, where: everywhere, why: 'localities of endpoints, addresses of node ports' },
  { resource: 'services', group: core, verbs: follow, where: everywhere, why: 'services' },
  { resource: 'pods', group: core, verbs: follow, where: everywhere, why: 'labels and accounts of endpoints and proxies' },
  { resource: 'endpoints', group: core, verbs: follow, where: everywhere, why: 'endpoints with PILOT_USE_ENDPOINT_SLICE=false' },
  { resource: 'endpointslices', group: 'discovery.k8s.io', verbs: follow, where: everywhere, why: 'endpoints' },
  { resource: 'ingresses', group: 'networking.k8s.io', verbs: follow, where: everywhere, why: 'routes of gateways (docs/resources.md, I1)' },
  { resource: 'ingressclasses', group: 'networking.k8s.io', verbs: follow, where: everywhere, why: 'which Ingresses are for this mesh' },
  { resource: 'ingresses/status', group: 'networking.k8s.io', verbs: ['patch'], where: everywhere, why: 'their addresses (docs/resources.md, I7)' },
  {
    ...{ resource: 'customresourcedefinitions', group: 'apiextensions.k8s.io', verbs: follow, where: everywhere },
    why: 'which kinds of the mesh are defined (F18)',
  },
  {
    ...{ resource: 'configmaps', group: core, verbs: ['list', 'watch', 'create', 'patch'], where: everywhere, names: ['mesh-ca-root-cert'] },
    why: 'the root certificates for the pods of each namespace',
  },
  {
    resource: 'tokenreviews',
    group: 'authentication.k8s.io',
    verbs: ['create'],
    where: everywhere,
    why: 'tokens of workloads (docs/identity.md, K7)',
  },
  { resource: 'secrets', group: core, verbs: follow, where: everywhere, why: 'Secrets for gateways (docs/resources.md, K12)' },
  {
    ...{ resource: 'subjectaccessreviews', group: 'authorization.k8s.io', verbs: ['create'], where: everywhere },
    why: 'which gateways may read Secrets (docs/resources.md, K11)',
  },
  { resource: 'configmaps', group: core, verbs: follow, where: mine, names: settingsNames(''), why: 'mesh configuration and networks (C15)' },
  { resource: 'secrets', group: core, verbs: ['create'], where: mine, why: 'the state of the certificate authority (docs/certificates.md, K13)' },
  {
    ...{ resource: 'secrets', group: core, verbs: ['get', 'update'], where: mine, names: [root, state, noteSecret('clock'), noteSecret('ledger')] },
    why: 'the state of the certificate authority',
  },
  {
    ...{ resource: 'secrets', group: core, verbs: ['get', 'update'], where: mine, names: ledgerParts },
    why: 'the parts of a large ledger (docs/certificates.md, K12)',
  },
  {
    ...{ resource: 'secrets', group: core, verbs: ['get'], where: mine, names: [pluggedIn, formerRoot, versions] },
    why: 'an authority that is plugged in, or that of an installation before; versions of configuration',
  },
  {
    ...{ resource: 'configmaps', group: core, verbs: follow, where: mine, names: injectorNames('') },
    why: 'the configuration of injection (docs/injection.md, N1)',
  },
  {
    ...{ resource: 'mutatingwebhookconfigurations', group: 'admissionregistration.k8s.io', verbs: [...follow, 'patch'], where: everywhere },
    why: 'the CA bundles of injection webhooks (docs/injection.md, N15)',
  },
  {
    ...{ resource: 'validatingwebhookconfigurations', group: 'admissionregistration.k8s.io', verbs: ['get', 'patch'], where: everywhere },
    ...{ names: ['meshd-mesh-system'], why: 'certificates and failure policy of the validating webhook (W7)' },
  },
  ...groupSpellings('networking').map(
    (group): Access => ({
      resource: 'gateways',
      group,
      verbs: ['create'],
      where: mine,
      why: 'an invalid Gateway that is not stored, to see whether the webhook denies it (W7)',
    }),
  ),
  {
    resource: 'leases',
    group: 'coordination.k8s.io',
    verbs: ['get', 'create', 'update', 'delete', ...follow],
    where: mine,
    why: 'which replica leads (L1), and which there are (A1)',
  },
]

/** The signer in the manifest, which whoever applies it replaces. */
const exampleSigner = 'example.com/mesh'
const csrs = 'certificates.k8s.io'

/** What `ORCH_SIGNER` needs beside that (docs/certificates.md, E7): `manifests/optional/signer.yaml`, which only those apply who set it. */
export const signerAccesses: readonly Access[] = [
  {
    ...{ resource: 'certificatesigningrequests', group: csrs, verbs: ['create', 'get', 'list', 'delete'], where: everywhere },
    why: 'requests to the signer of ORCH_SIGNER',
  },
  { resource: 'certificatesigningrequests/approval', group: csrs, verbs: ['update'], where: everywhere, why: 'their approval' },
  { resource: 'signers', group: csrs, verbs: ['approve'], where: everywhere, names: [exampleSigner], why: 'the same' },
  {
    ...{ resource: 'secrets', group: core, verbs: ['get', 'create', 'update'], where: mine },
    why: 'Secrets of certificates of the mesh configuration (docs/certificates.md, M1)',
  },
]

/**
 * What `PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION` needs beside that (docs/registration.md, R12): `manifests/optional/registration.yaml`, which only
 * those apply who set it.
 */
export const registrationAccesses: readonly Access[] = [
  ...groupSpellings('networking').flatMap((group): Access[] => [
    {
      ...{ resource: 'workloadentries', group, verbs: ['create', 'patch', 'delete'], where: everywhere },
      why: 'entries of workloads that register themselves',
    },
    { resource: 'workloadentries/status', group, verbs: ['patch'], where: everywhere, why: 'their health' },
  ]),
  { resource: 'leases', group: 'coordination.k8s.io', verbs: ['delete'], where: mine, why: 'Leases of replicas that are gone (R9)' },
]

/** The kinds of the mesh, in both spellings of their groups. */
const configuration = ofKinds('', follow, 'configuration')

/** What `PILOT_ENABLE_STATUS` needs beside that (docs/status.md, S6): `manifests/optional/status.yaml`, which only those apply who set it. */
export const statusAccesses: readonly Access[] = ofKinds('/status', ['patch'], 'its status')

function ofKinds(subresource: string, verbs: Access['verbs'], why: string): readonly Access[] {
  return [...kinds.values()].flatMap(({ plural, group }) =>
    groupSpellings(group).map((spelling): Access => ({ resource: `${plural}${subresource}`, group: spelling, verbs, where: 'cluster', why })),
  )
}

/** All access, in the order of the role. */
export const accesses: readonly Access[] = [...fixed, ...configuration]

/** The name of a resource with its group, as in messages: `leases.coordination.k8s.io`, `ingresses.networking.k8s.io/status`. */
export function accessName({ resource, group }: Pick<Access, 'resource' | 'group'>): string {
  const [plural, subresource] = resource.split('/')
  return `${plural}${group === '' ? '' : `.${group}`}${subresource === undefined ? '' : `/${subresource}`}`
}

/** The names of the kinds of the mesh without their domain: the mesh may have another one (`MESH_DOMAIN`), and its role too. */
const kindPrefixes: readonly string[] = [...kinds.values()].map(({ plural, group }) => `${plural}.${group}.`)

/**
 * Throws an Error when a resource is used in a way that is not declared here: the role would not permit it. `use`: its name, which an object
 * may follow (`configmaps mesh-system/mesh`).
 */
export function checkDeclared(verb: AccessVerb, use: string): void {
  const [resource = ''] = use.split(' ')
  // Every account may read it.
  if (verb === 'get' && resource === '/version') return
  const isDeclared = [...fixed, ...signerAccesses, ...registrationAccesses].some(
    (access) => accessName(access) === resource && access.verbs.includes(verb),
  )
  const isProbe = verb === 'create' && resource.startsWith('gateways.networking.')
  const isEntry = (verb === 'create' || verb === 'patch' || verb === 'delete') && /^workloadentries\.networking\.[^/]+$/.test(resource)
  const isOfKind = kindPrefixes.some((prefix) => resource.startsWith(prefix)) && resource.endsWith('/status') === (verb === 'patch')
  if (isDeclared || isProbe || isEntry || (isOfKind && (verb === 'list' || verb === 'watch' || verb === 'patch'))) return
  throw new Error(`"${verb}" of "${resource}" is not declared in src/orchestrator/access.ts, and so not in the role`)
}
