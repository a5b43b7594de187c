/** Why clusters that a request is sent to have no endpoint, in the words of the push queue. The result and the row of the cluster both say it. */
import type { Routing } from '../../../protocols/messages/explain.ts'

/** A routing with the reasons of clusters without endpoints, by cluster. */
export function withReasons(routing: Routing, whys: ReadonlyMap<string, string>): Routing {
  const clusters = routing.clusters.map((each) => {
    const why = whys.get(each.name)
    return why === undefined ? each : { ...each, because: `${each.because}: ${why}` }
  })
  const reasons = [...new Set(clusters.flatMap(({ name }) => whys.get(name) ?? []))]
  return reasons.length === 0 ? routing : { ...routing, clusters, reason: `${routing.reason}: ${reasons.join('; ')}` }
}
