import type { ActorDefinition } from '../../../actors/runtime/actor.ts'
import { Counter, Gauge } from '../../../actors/runtime/metrics.ts'

/** An actor that has counted three things at its start. */
export const actor: ActorDefinition<unknown, never> = {
  kind: 'counting',
  start({ metrics }) {
    const registers = [metrics]
    new Counter({ name: 'things_total', help: 'things', registers }).inc(3)
    new Gauge({ name: 'there', help: 'actors that are there', registers }).set(1)
    return { receive() {} }
  },
}
