/**
 * The implementation of `mesh.admin.v1.AdminService`, loaded with the first call. Which method is for whom follows the rules of the debug pages
 * (docs/operation.md, "Debug pages").
 */
import { createContextKey, type HandlerContext, type ServiceImpl } from '@connectrpc/connect'
import {
  AcceptTimeResponseSchema,
  AdminService,
  type Authority,
  AuthoritySchema,
  DistrustRootResponseSchema,
  ListHoldersResponseSchema,
  ListScopesResponseSchema,
  ListSettingsResponseSchema,
  ProxySidecarSchema,
  PushAgainResponseSchema,
  RotateRootResponseSchema,
  type SetScopeRequest,
  TrustRootResponseSchema,
} from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import type { AuthorityStatus } from '../../../protocols/messages/authority-status.ts'
import type { Settings } from '../../../src/cli/settings.ts'
import { changeScope, discoveryScopes, settingsOf } from '../../../src/logging/levels.ts'
import { ambiguous } from '../../../src/model/named-connection.ts'
import { status } from '../../../src/model/status-codes.ts'
import { isObjectName } from '../../../src/names/object-names.ts'
import type { ReferencedExplanation } from '../../../src/policy/explain.ts'
import { nodeType } from '../../../src/xds/type-urls.ts'
import { Page } from '../../http/page-server.ts'
import type { Call } from '../../rpc/call.ts'
import { callOf, connectHandlers, errorOf } from '../../rpc/connect-handlers.ts'
import type { RpcHandler } from '../../rpc/rpc-methods.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import {
  actorsMessage,
  clustersMessage,
  describedRequest,
  explainedMessage,
  explanationMessage,
  faultsMessage,
  filesMessage,
  findingsMessage,
  messageOf,
  nodeRow,
  previewMessage,
  proxiesMessage,
  resourcesMessage,
  routingMessage,
  sentRequest,
} from './admin-messages.ts'
import { dryRunOf } from './dry-run-answers.ts'
import { explainedFor } from './explain-answers.ts'
import type { LevelsInForce } from './levels-in-force.ts'
import {
  actorsOf,
  clustersOf,
  disconnect,
  explanationOf,
  faultsOf,
  filesOf,
  findingsOf,
  holdersOf,
  longestLedger,
  proxiesOf,
  proxyNamed,
  pushAgain,
  sidecarOf,
  silenceOf,
} from './mesh-answers.ts'
import { forbiddenNamespace, forNoOperator, type Viewer } from './page-access.ts'
import type { PageSources } from './page-sources.ts'
import { pushRpcs, type StreamPlace } from './push-rpcs.ts'
import { resourceTypes } from './resource-types.ts'
import { routingOf } from './routing-answers.ts'
import { Unavailable } from './unavailable.ts'

/** Dependencies and settings of the service. */
export interface AdminRpcParts {
  readonly sources: PageSources
  readonly levels: LevelsInForce
  /** What the flags and variables of this process are set to. */
  readonly settings: () => Promise<Settings>
  readonly log: ScopedLogger
  /** The domain of the mesh's API groups. */
  readonly domain: string
  /** Whether changes that are actions of debug pages are served (`ENABLE_ADMIN_ENDPOINTS`, the admin socket). */
  readonly admin: boolean
  /** The place of a stream of which a writer asks for one message; undefined: all are sent. */
  readonly placeOf?: (call: Call) => StreamPlace | undefined
  /** Authenticates a call: returns its viewer, or the page that refuses it. */
  readonly admit: (call: Call) => Promise<Viewer | Page>
}

type Methods = ServiceImpl<typeof AdminService>

const viewerKey = createContextKey<Viewer | undefined>(undefined, { description: 'the caller' })
const viewerOf = ({ values }: HandlerContext): Viewer => values.get(viewerKey) as Viewer

/** Returns the handlers of the methods, by path. */
export function adminRpcs(parts: AdminRpcParts): ReadonlyMap<string, RpcHandler> {
  return connectHandlers({
    registry: resourceTypes,
    statusOf: (error) => (error instanceof Unavailable ? { code: status.unavailable, message: error.message } : undefined),
    failed: (path, error) => parts.log.error(`${path} failed: ${error instanceof Error ? error.message : error}`),
    async gate(context) {
      const viewer = await parts.admit(callOf(context))
      if (viewer instanceof Page) throw refusal(viewer)
      context.values.set(viewerKey, viewer)
    },
    routes: (router) => router.service(AdminService, { ...ofProxies(parts), ...ofPushes(parts), ...ofMesh(parts), ...ofAuthority(parts) }),
  })
}

function ofProxies({ sources, domain, log, admin }: AdminRpcParts) {
  const named = async (name: string, { sees }: Viewer, from = sources) => {
    if (name === '') throw errorOf({ code: status.invalidArgument, message: 'proxy: a name is required' })
    const { proxy, candidates, suggested, silent } = await proxyNamed(from, name, sees)
    if (proxy) return proxy
    if (candidates.length > 0) throw errorOf({ code: status.notFound, message: `proxy: ${ambiguous(name, candidates)}` })
    const message = `proxy ${JSON.stringify(name.slice(0, 100))} is not connected to ${from.others ? 'any replica that answers' : 'this instance'}`
    if (silent.length > 0) throw errorOf({ code: status.unavailable, message: `${message}; ${silenceOf(silent)}` })
    throw errorOf({ code: status.notFound, message: message + suggested })
  }
  return {
    async listProxies({ namespace, proxy, thisReplica }, context) {
      const from = thisReplica ? sources.own : sources
      const viewer = viewerOf(context)
      if (namespace !== '' && !viewer.sees(namespace)) throw refusal(forbiddenNamespace(namespace))
      const sees = namespace === '' ? viewer.sees : (of: string) => of === namespace
      const only = proxy === '' ? undefined : await named(proxy, { ...viewer, sees }, from)
      const { rows, replicas } = await proxiesOf(from, sees)
      const isMeant = ({ connectionId, replica }: (typeof rows)[number]) => !only || (connectionId === only.connectionId && replica === only.replica)
      return proxiesMessage(rows.filter(isMeant), replicas)
    },
    async getProxyConfig(request, context) {
      const viewer = viewerOf(context)
      const proxy = await named(request.proxy, viewer)
      const isJson = context.requestHeader.get('content-type')?.includes('json') ?? false
      const { connectionId, nodeId } = proxy
      const resources = resourcesMessage(await sources.resourcesOf(proxy), request, isJson)
      if (typeof resources === 'string') throw errorOf({ code: status.resourceExhausted, message: resources })
      const node = request.typeUrls.includes(nodeType) ? await sources.nodeOf(proxy) : undefined
      const sidecar = request.sidecar ? messageOf(ProxySidecarSchema, await sidecarOf(sources, proxy, viewer.sees)) : undefined
      return { connectionId, nodeId, resources: [...resources, ...(node ? [nodeRow(node)] : [])], sidecar }
    },
    async explainRequest(request, context) {
      const proxy = await named(request.proxy, viewerOf(context))
      const described = describedRequest(request)
      if (typeof described === 'string') throw errorOf({ code: status.invalidArgument, message: described })
      const explanation = await explanationOf(sources, proxy, described)
      if ('considered' in explanation) return { ...explanationMessage(explanation as ReferencedExplanation), nodeId: proxy.nodeId }
      throw errorOf({ code: status.unavailable, message: 'the configuration of this proxy is not known yet' })
    },
    async routeRequest(request, context) {
      const viewer = viewerOf(context)
      const proxy = await named(request.proxy, viewer)
      const sent = sentRequest(request)
      if (typeof sent === 'string') throw errorOf({ code: status.invalidArgument, message: sent })
      return { ...routingMessage(await routingOf(sources, proxy, sent, viewer.sees)), nodeId: proxy.nodeId }
    },
    async explainResource({ proxy: of, type, name }, context) {
      const viewer = viewerOf(context)
      const proxy = await named(of, viewer)
      const answer = await explainedFor(sources, proxy, type, name, viewer.sees)
      if (typeof answer === 'string') throw errorOf({ code: status.invalidArgument, message: answer })
      return { ...explainedMessage(answer, domain), nodeId: proxy.nodeId }
    },
    async previewChanges({ files, replace, thisReplica, namespace }, context) {
      if (namespace !== '' && !isObjectName(namespace))
        throw errorOf({ code: status.invalidArgument, message: `namespace: ${quoted(namespace)} is not a name` })
      const answer = await operatorsOnly(viewerOf(context), () => dryRunOf(thisReplica ? sources.own : sources, files, { replace, namespace }))
      if (typeof answer === 'string') throw errorOf({ code: status.resourceExhausted, message: answer })
      return previewMessage(answer.run, answer.replicas, domain)
    },
    async pushAgain(_, context) {
      acting(viewerOf(context), log, 'PushAgain')
      return messageOf(PushAgainResponseSchema, await pushAgain(sources))
    },
    async disconnectProxy({ proxy }, context) {
      acting(viewerOf(context), log, `DisconnectProxy ${quoted(proxy)}`, admin)
      const { connectionId, silent } = await disconnect(sources, proxy)
      if (connectionId !== undefined) return { connectionId }
      if (silent.length > 0) throw errorOf({ code: status.unavailable, message: `proxy: none has this name; ${silenceOf(silent)}` })
      throw errorOf({ code: status.notFound, message: 'proxy: none has this name' })
    },
  } satisfies Partial<Methods>
}

function ofPushes({ sources, domain, placeOf }: AdminRpcParts) {
  const seesOf = (context: HandlerContext, namespace: string) => {
    const { sees } = viewerOf(context)
    if (namespace === '') return sees
    if (!sees(namespace)) throw refusal(forbiddenNamespace(namespace))
    return (of: string) => of === namespace
  }
  return pushRpcs({ sources, domain, seesOf, placeOf: placeOf ?? (() => undefined) }) satisfies Partial<Methods>
}

function ofMesh({ sources, levels, settings, domain, log }: AdminRpcParts) {
  const from = ({ thisReplica }: { readonly thisReplica: boolean }) => (thisReplica ? sources.own : sources)
  const scopes = () => ({ scopes: messageOf(ListScopesResponseSchema, { scopes: settingsOf(levels.get(), discoveryScopes) }).scopes })
  return {
    listFaults: async (request, context) => faultsMessage(await operatorsOnly(viewerOf(context), () => faultsOf(from(request)))),
    async listFindings({ namespace, level }, context) {
      const { sees } = viewerOf(context)
      if (namespace !== '' && !sees(namespace)) throw refusal(forbiddenNamespace(namespace))
      const wanted = levelsFrom(level)
      if (wanted.length === 0) throw errorOf({ code: status.invalidArgument, message: 'level: expected error, warning or info' })
      const found = await findingsOf(sources, namespace === '' ? sees : (of) => of === namespace)
      if (found instanceof Page) throw refusal(found)
      return findingsMessage({ ...found, findings: found.findings.filter((finding) => wanted.includes(finding.level)) }, domain)
    },
    getFiles: async (_, context) => filesMessage(await operatorsOnly(viewerOf(context), () => filesOf(sources)), domain),
    listActors: async (_, context) => actorsMessage(await operatorsOnly(viewerOf(context), () => actorsOf(sources.supervisor))),
    listClusters: async (request, context) => clustersMessage(await operatorsOnly(viewerOf(context), () => clustersOf(from(request)))),
    listScopes: (_, context) => operatorsOnly(viewerOf(context), scopes),
    listSettings: async (_, context) => messageOf(ListSettingsResponseSchema, await operatorsOnly(viewerOf(context), settings)),
    async setScope(request, context) {
      acting(viewerOf(context), log, `SetScope ${quoted(request.name)}`)
      try {
        await levels.set(changeScope(levels.get(), discoveryScopes, formOf(request)))
      } catch (error) {
        throw errorOf({ code: status.invalidArgument, message: (error as Error).message })
      }
      return scopes()
    },
  } satisfies Partial<Methods>
}

const findingLevels = ['info', 'warning', 'error']

/** The levels from one on; all for none, and none for a word that is no level. */
const levelsFrom = (level: string): readonly string[] =>
  level === '' ? findingLevels : findingLevels.slice(findingLevels.indexOf(level)).filter(() => findingLevels.includes(level))

function formOf({ name, outputLevel, stackTraceLevel, logCallers }: SetScopeRequest): URLSearchParams {
  const fields = { scope: name, output_level: outputLevel, stack_trace_level: stackTraceLevel, log_callers: logCallers?.toString() }
  return new URLSearchParams(Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined))
}

function ofAuthority({ sources, log, admin }: AdminRpcParts) {
  const asked = async (question: string, ...details: unknown[]): Promise<object> => {
    const answer = await sources.authority<object>(question, ...details)
    if (answer instanceof Page) throw refusal(answer)
    return answer
  }
  const authority = async (): Promise<Authority> => {
    const page = (await asked('status')) as AuthorityStatus | undefined
    if (page) return messageOf(AuthoritySchema, page)
    throw errorOf({ code: status.unavailable, message: 'the certificate authority is not ready' })
  }
  return {
    getAuthority: async (_, context) => ({ authority: await operatorsOnly(viewerOf(context), authority) }),
    async listHolders({ start, length }, context) {
      const holders = await holdersOf(sources, start, Math.min(length || longestLedger, longestLedger), viewerOf(context).sees)
      if (holders instanceof Page) throw refusal(holders)
      return messageOf(ListHoldersResponseSchema, holders)
    },
    async rotateRoot({ force }, context) {
      acting(viewerOf(context), log, force ? 'RotateRoot (forced)' : 'RotateRoot', admin)
      return messageOf(RotateRootResponseSchema, await asked('rotate', force))
    },
    async distrustRoot({ id, dryRun }, context) {
      acting(viewerOf(context), log, `DistrustRoot ${quoted(id)}${dryRun ? ' (dry run)' : ''}`, admin)
      return messageOf(DistrustRootResponseSchema, await asked('distrust', id, dryRun))
    },
    async trustRoot({ id }, context) {
      acting(viewerOf(context), log, `TrustRoot ${quoted(id)}`, admin)
      return messageOf(TrustRootResponseSchema, await asked('trust', id))
    },
    async acceptTime(_, context) {
      acting(viewerOf(context), log, 'AcceptTime', admin)
      return messageOf(AcceptTimeResponseSchema, await asked('acceptTime'))
    },
  } satisfies Partial<Methods>
}

/** Answers operators. Other callers are refused before anything is asked. */
function operatorsOnly<Answer>(viewer: Viewer, answer: () => Answer): Answer {
  if (!viewer.isOperator) throw refusal(forNoOperator)
  return answer()
}

/**
 * Refuses a change to callers who may not make it, and logs it otherwise. A browser cannot be made to send it by a page of another site,
 * because the content types of RPCs need a preflight (Fetch, "CORS-safelisted request-header").
 */
function acting(viewer: Viewer, log: ScopedLogger, what: string, isServed = true): void {
  if (!isServed) throw errorOf({ code: status.permissionDenied, message: 'changes are not served here (ENABLE_ADMIN_ENDPOINTS=false)' })
  if (!viewer.isOperator) throw refusal(forNoOperator)
  if (!viewer.mayAct) throw errorOf({ code: status.permissionDenied, message: 'a change needs the admin socket or a token of the root namespace' })
  log.info(`${what} by ${viewer.name}`)
}

/** Returns what a caller named, for a line of the log. */
const quoted = (name: string): string => JSON.stringify(name.slice(0, 100))

/** gRPC codes by the status of the page that says the same. */
const codes: Readonly<Record<number, number>> = {
  400: status.invalidArgument,
  401: status.unauthenticated,
  403: status.permissionDenied,
  404: status.notFound,
  503: status.unavailable,
}

const refusal = (page: Page) => errorOf({ code: codes[page.status] ?? status.internal, message: String(page.body) })
