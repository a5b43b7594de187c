/** The supervisor's answers to questions of actors: forwards them to other actors and combines the answers. */
import type { AdminCallQuestion, AdminCallReply } from '../../../protocols/messages/admin-call.ts'
import type { AskedGeneration, CountedProxies, OthersCounted } from '../../../protocols/messages/object-status.ts'
import type { RemoteKey } from '../../../protocols/messages/orchestrator.ts'
import type { ListPiece, PageQuestion, PageReply } from '../../../protocols/messages/pages.ts'
import type { EventsOfAll } from '../../../protocols/messages/proxy-events.ts'
import type { ConnectedProxy, StreamsElsewhere } from '../../../protocols/messages/replicas.ts'
import type { ServedChanges, ServedObject } from '../../../protocols/messages/served-config.ts'
import type { Settings } from '../../../src/cli/settings.ts'
import type { Features } from '../../../src/config/features.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import type { Logger } from '../../runtime/logger.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import type { ConnectionStatus, ConnectionsOfAll } from '../xds-writer/connection-debug.ts'
import { PassedCalls } from './admin-service.ts'
import type { Explanations } from './explanations.ts'
import type { LevelsInForce } from './levels-in-force.ts'
import { silenceOf, silentAmong } from './mesh-answers.ts'
import type { OtherReplicas } from './other-replicas.ts'
import { PageSources, type Placed } from './page-sources.ts'
import { eventsOfAll } from './proxy-event-answers.ts'
import type { ReadinessJudge } from './readiness.ts'

/** Returns the answers to the questions with deadlines of their own, which are those of other actors. */
function passedOn(supervisor: Supervisor): BoundedAnswers<'tokenKeys' | 'signCertificate' | 'signServingCertificate'> {
  return {
    tokenKeys: (question, asking = patient) => supervisor.askFor(asking, 'authenticator', 'tokenKeys', question),
    signCertificate: (request, asking = patient) => supervisor.askFor(asking, 'certificate-authority', 'signCertificate', request),
    signServingCertificate: (request, asking = patient) => supervisor.askFor(asking, 'certificate-authority', 'signServingCertificate', request),
  }
}

/** The sums of what the other replicas count. */
async function othersCounted(others: OtherReplicas | undefined, asked: readonly AskedGeneration[]): Promise<OthersCounted> {
  const { answers, replicas } = others ? await others.ask<CountedProxies>('counted', asked) : { answers: [], replicas: [] }
  return {
    all: answers.reduce((sum, { value }) => sum + value.all, 0),
    have: asked.map((_, index) => answers.reduce((sum, { value }) => sum + (value.have[index] ?? 0), 0)),
    withdrawn: answers.flatMap(({ value }) => value.withdrawn ?? []),
    silent: replicas.filter(({ name, answered }) => !answered && !others?.isDead(name)).map(({ name }) => name),
  }
}

/** The streams of the other replicas. */
async function streamsElsewhere(others: OtherReplicas | undefined): Promise<StreamsElsewhere> {
  if (!others) return { streams: [], replicas: [] }
  const { answers, replicas } = await others.ask<readonly ConnectedProxy[]>('streams')
  return { streams: answers.flatMap(({ value }) => value), replicas: [{ name: others.own, answered: true, reason: '' }, ...replicas] }
}

/** Dependencies and settings of the answers. */
export interface StatusParts {
  readonly features: Features
  readonly log: Logger
  readonly readiness: ReadinessJudge
  readonly levels: LevelsInForce
  readonly settings: () => Promise<Settings>
  readonly explanations: Explanations
  /** Present where the other replicas are asked too. */
  readonly others: OtherReplicas | undefined
  /** The keys of remote secrets, where there are any. */
  readonly remoteKeys: (() => readonly RemoteKey[]) | undefined
}

/** Returns the functions that answer the questions. */
export function statusAnswers(supervisor: Supervisor, parts: StatusParts) {
  const { features, log, readiness, levels, settings, explanations, others, remoteKeys } = parts
  const sources = new PageSources(supervisor, features.PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING, explanations, { others, remoteKeys })
  const admin = { sources, levels, settings, log: log('default'), domain: features.MESH_DOMAIN }
  const calls = new PassedCalls(admin, features.ENABLE_ADMIN_ENDPOINTS, () => sources.queue('mesh'))
  return {
    adminCall: (question: AdminCallQuestion): Promise<AdminCallReply> => {
      if (features.ENABLE_DEBUG_ON_HTTP) return calls.answer(question)
      const trailers = { 'grpc-status': String(status.unimplemented), 'grpc-message': 'it%20is%20served%20on%20the%20admin%20socket%20only' }
      return Promise.resolve({ body: new Uint8Array(), trailers })
    },
    connections: (): Promise<ConnectionStatus[]> => sources.connections(true),
    connectionsOfAll: async (withMetadata: boolean): Promise<ConnectionsOfAll> => {
      const { rows, replicas } = await sources.allConnections(withMetadata)
      const silent = silentAmong(replicas)
      const answered = replicas.flatMap((replica) => (replica.answered ? replica.name : []))
      return { connections: rows, answered, silent, silence: silenceOf(silent) }
    },
    resourcesOf: (connection: Placed<ConnectionStatus>) => sources.resourcesOf(connection),
    proxyEvents: (cursor: string, waitMs: number): Promise<EventsOfAll> => eventsOfAll(sources, cursor, waitMs),
    servedObjects: (next?: number): Promise<ListPiece<ServedObject>> => sources.queue('servedObjects', next),
    servedChanges: (cursor: string, waitMs: number): Promise<ServedChanges> => sources.queue('servedChanges', cursor, waitMs),
    portsOfProxies: (): Promise<readonly number[]> => sources.queue('portsOfProxies'),
    isReady: (): boolean => readiness.judge().ready,
    othersCounted: (asked: readonly AskedGeneration[]): Promise<OthersCounted> => othersCounted(others, asked),
    streamsElsewhere: (): Promise<StreamsElsewhere> => streamsElsewhere(others),
    ...passedOn(supervisor),
    debugPage: async (question: PageQuestion): Promise<PageReply> => {
      if (!features.ENABLE_DEBUG_ON_HTTP) return { status: 404, headers: {}, body: 'there is no such page' }
      const { answerCaller } = await import('./debug-pages.ts')
      const parts = { sources, admin: features.ENABLE_ADMIN_ENDPOINTS, log: log('default') }
      return answerCaller(parts, question, await sources.queue('mesh'))
    },
  }
}
