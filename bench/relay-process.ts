/** Runs the agent's relay in a process of its own, without the rest of the agent. Driven by messages from bench/scenarios/relay.ts. */
import { actor } from '../actors/agent/xds-relay/xds-relay.ts'
import { collectGarbageWhenIdle } from '../actors/runtime/idle-collection.ts'
import { createLogger } from '../actors/runtime/logger.ts'
import { MetricRegistry } from '../actors/runtime/metrics.ts'
import type { XdsRelayConfig } from '../protocols/messages/xds-relay.ts'

const quiet = { fallback: 'none', scopes: {} } as const

collectGarbageWhenIdle()
// The driver has exited.
process.on('disconnect', () => process.exit(0))
process.on('message', async (config: XdsRelayConfig) => {
  await actor.start({
    name: 'xds-relay',
    config,
    log: createLogger({ output: quiet, stackTrace: quiet, callers: [] }, () => undefined),
    metrics: new MetricRegistry(),
    note: () => undefined,
    ask: () => Promise.reject(new Error('nobody answers')),
    askFor: () => Promise.reject(new Error('nobody answers')),
  })
  process.send?.('listening')
})
