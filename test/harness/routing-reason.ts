/** Why a request of the only proxy of a discovery service is answered as it is. */
import { expect } from 'chai'
import type { PageSources } from '../../actors/discovery/admin/page-sources.ts'
import { routingOf } from '../../actors/discovery/admin/routing-answers.ts'
import { describedRequest } from './described-request.ts'

/**
 * Returns the reason of what becomes of a request to port 80 of a host, told to who sees some namespaces. Its cluster has the same reason, or none where
 * the request does not fail.
 */
export async function routingReason(sources: PageSources, host: string, sees: (namespace: string) => boolean = () => true): Promise<string> {
  const [proxy] = (await sources.allConnections(true)).rows
  if (!proxy) throw new Error('no proxy')
  const request = { ...describedRequest, scheme: 'http' as const, host, destinationPort: 80 }
  const { routing } = await routingOf(sources, proxy, request, sees)
  expect(routing.clusters.map(({ because }) => because)).to.deep.equal(routing.status === 503 ? [routing.reason] : [''])
  return routing.reason
}
