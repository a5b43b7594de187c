/**
 * What this replica answers to others (docs/operation.md, A3), from its own state alone: it never asks on. Who asks is a replica and has authorized its
 * caller, so rows of all namespaces are given out.
 */
import type { CountedProxies } from '../../../protocols/messages/object-status.ts'
import type { ConnectedProxy, ReplicaQuestion } from '../../../protocols/messages/replicas.ts'
import type { ReplicaLoad } from '../../../src/orchestrator/proxy-spread.ts'
import type { Share } from '../../../src/push/classes/identity-shares.ts'
import { Page } from '../../http/page-server.ts'
import type { Exceeded } from '../xds-writer/budgets.ts'
import type { SlowConnection } from '../xds-writer/slow-connections.ts'
import { ports } from './awaited-ports.ts'
import { distributionOf, instancesOf } from './distribution-rows.ts'
import { ownNodes } from './dry-run-answers.ts'
import { explainedHere } from './explain-answers.ts'
import { ownClusters, ownFaults, ownProxies } from './mesh-answers.ts'
import type { PageSources } from './page-sources.ts'
import { sharedEvents } from './proxy-event-answers.ts'
import { ownPushes } from './push-answers.ts'
import { unopenedPorts } from './readiness.ts'
import { type AnswerReplica, noSuchQuestion } from './replica-port.ts'

/** The questions about a proxy that are passed on to the push queue. */
const ofProxy = ['explain', 'routeFields', 'portProtocols', 'unhealthyEntries', 'lostEndpoints', 'sidecarInForce', 'sidecarScope']

/** Returns what answers questions of replicas. `load`: the load of this one. */
export function replicaAnswers(sources: PageSources, load: () => Promise<ReplicaLoad>): AnswerReplica {
  const answers: Readonly<Record<ReplicaQuestion, (...details: unknown[]) => Promise<unknown>>> = {
    connections: (withMetadata) => sources.connections(withMetadata === true),
    proxies: () => ownProxies(sources),
    slow: () => sources.writers<SlowConnection>('slow'),
    exceeded: () => sources.writers<Exceeded>('exceeded'),
    nodes: () => ownNodes(sources),
    shares: () => sources.queue<Share[]>('shares'),
    instances: () => instancesOf(sources),
    distribution: (resource) => distributionOf(sources, String(resource)),
    pushes: (after) => ownPushes(sources, String(after), 0),
    proxyEvents: (cursor) => sharedEvents(sources, String(cursor)),
    faults: () => ownFaults(sources),
    conflicts: () => sources.queue('conflicts'),
    withoutEffect: () => sources.queue('withoutEffect'),
    clusters: () => ownClusters(sources),
    heldClusters: async () => ((await load()).isReady ? sources.remoteKeys().flatMap(({ name, isHeld }) => (isHeld ? name : [])) : []),
    openPorts: async () => ((await load()).isReady && unopenedPorts(sources.supervisor.states()).length === 0 ? [ports] : []),
    ofProxy: async (question, connectionId, ...details) => {
      if (!ofProxy.includes(String(question))) throw new Error(noSuchQuestion)
      return sources.ofProxy(String(question), { connectionId: String(connectionId) }, ...details)
    },
    counted: (asked) => sources.supervisor.ask<CountedProxies>('status-writer', 'counted', asked),
    streams: async () => {
      const streams = await sources.authority<ConnectedProxy[]>('streams')
      return streams instanceof Page ? [] : streams
    },
    explainResource: (connectionId, typeUrl, name) => explainedHere(sources, { connectionId: String(connectionId) }, String(typeUrl), String(name)),
    resources: (connectionId) => sources.resourcesOf({ connectionId: String(connectionId) }),
    node: async (connectionId) => (await sources.nodeOf({ connectionId: String(connectionId) })) ?? null,
    disconnect: async (connectionId) => (await sources.supervisor.askAll<boolean>('xds-writer', 'disconnect', String(connectionId))).includes(true),
    load,
    pushAgain: async () => [{ proxies: await sources.queue<number>('pushAgain') }],
  }
  return async (question, details) => {
    if (!Object.hasOwn(answers, question)) throw new Error(noSuchQuestion)
    return answers[question as ReplicaQuestion](...details)
  }
}
