/** Over which replicas of discovery each answer is. Pages say it in their table (`debug-table.ts`), methods here; `test/actors/replica-coverage.test.ts` holds both to it. */
import type { adminMethods } from '../../../protocols/messages/admin-call.ts'

/**
 * What an answer covers (docs/operation.md, A5, A6): `replicas`: what depends on which proxies a replica serves, or on its own connections, of all
 * replicas; `configuration`: what every replica has read and so has alike; `authority`: the state of the certificate authority, which replicas share;
 * `process`: the process that is asked.
 */
export type Coverage = 'replicas' | 'configuration' | 'authority' | 'process'

/** What the answer of each method of the admin service covers. */
export const methodCoverage: Readonly<Record<(typeof adminMethods)[number], Coverage>> = {
  ListProxies: 'replicas',
  GetProxyConfig: 'replicas',
  ExplainRequest: 'replicas',
  RouteRequest: 'replicas',
  ExplainResource: 'replicas',
  PreviewChanges: 'replicas',
  ListPushes: 'replicas',
  WatchPushes: 'replicas',
  ListFaults: 'replicas',
  ListClusters: 'replicas',
  PushAgain: 'replicas',
  DisconnectProxy: 'replicas',
  ListFindings: 'configuration',
  GetFiles: 'process',
  ListActors: 'process',
  ListScopes: 'process',
  ListSettings: 'process',
  SetScope: 'process',
  GetAuthority: 'authority',
  ListHolders: 'authority',
  RotateRoot: 'authority',
  DistrustRoot: 'authority',
  TrustRoot: 'authority',
  AcceptTime: 'authority',
}
