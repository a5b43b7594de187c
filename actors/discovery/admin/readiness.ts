/** Determines whether the service is ready, and which of its parts are unhealthy, from the supervisor's states alone. */
import { attentionNote, awaitedNote, servingNote, unknownNote, unopenedNote, unsyncedNote } from '../../../protocols/messages/notes.ts'
import type { ActorState } from '../../runtime/supervisor.ts'
import { isRemoteActor } from '../given/sources.ts'

/** An answer to `/ready`. The text names every unhealthy part, even if the service is ready. */
export interface Readiness {
  readonly ready: boolean
  readonly text: string
}

/**
 * Determines readiness from the states of all actors. The service is not ready while an actor is failing, an actor waits for
 * something (`awaitedNote`), or no writer serves a complete state. `before`: whether it has been ready already. If not, it becomes ready only when every running writer serves a complete state and
 * no actor is in its first start. `advice`: what the operator has to do first. `remarks`: what does not change whether it is ready. `held`: why it
 * does not become ready yet although it serves.
 * An actor of another cluster that keeps failing is told, and costs that cluster only.
 */
export function readiness(
  states: readonly ActorState[],
  sources: readonly string[],
  before: boolean,
  advice?: string,
  remarks: readonly string[] = [],
  held: readonly string[] = [],
): Readiness {
  const writers = states.filter(({ name }) => name.startsWith('xds-writer/'))
  const serving = writers.filter(({ notes }) => notes.get(servingNote) === true)
  const failing = states.some(({ name, health }) => health === 'failing' && !isRemoteActor(name))
  const complete =
    serving.length > 0 &&
    (before || !states.some((state) => isFirstStart(state) || (state.state === 'running' && writers.includes(state) && !serving.includes(state))))
  const awaited = states.flatMap(({ notes }) => (notes.get(awaitedNote) as readonly string[] | undefined) ?? [])
  const ready = complete && !failing && awaited.length === 0 && held.length === 0
  const missing = !complete
    ? 'the complete configuration is not served yet'
    : awaited.length > 0
      ? 'webhooks are not served'
      : 'a port has no certificate'
  const queue = states.find(({ name }) => name === 'push-queue')
  const unsynced = (queue?.notes.get(unsyncedNote) as readonly string[] | undefined) ?? sources
  const lines = [
    ...(ready ? [] : [`discovery is not ready: ${failing ? 'an actor keeps failing' : missing}`]),
    ...(advice === undefined ? [] : [advice]),
    ...unsynced.map((source) => `${source} has not delivered its complete state yet`),
    ...awaited,
    ...held,
    ...unopenedPorts(states),
    ...states.flatMap(({ notes }) => (notes.get(unknownNote) as readonly string[] | undefined) ?? []),
    ...new Set(states.flatMap(({ notes }) => (notes.get(attentionNote) as readonly string[] | undefined) ?? [])),
    ...remarks,
    ...states.flatMap((state) => fault(state) ?? []),
  ]
  return { ready, text: lines.join('\n') }
}

/** Why ports are not open: their certificates were not signed. Each reason once for all actors. */
export const unopenedPorts = (states: readonly ActorState[]): readonly string[] => [
  ...new Set(states.flatMap(({ notes }) => (notes.get(unopenedNote) as readonly string[] | undefined) ?? [])),
]

/** The present readiness. Remembers whether the service has been ready before. */
export class ReadinessJudge {
  readonly #states: () => readonly ActorState[]
  readonly #sources: readonly string[]
  readonly #advice: string | undefined
  readonly #remarks: () => readonly string[]
  readonly #becoming: () => void
  readonly #held: (unopened: readonly string[]) => readonly string[]
  #wasReady = false

  /**
   * `states`: the present states of all actors. `sources`: the names of the sources. `advice`: what the operator has to do first. `remarks`: what
   * does not change whether it is ready. `becoming`: called once, before anybody is told that the service is ready. `held`: why a service that has
   * not been ready waits, by the ports that are not open.
   */
  constructor(
    states: () => readonly ActorState[],
    sources: readonly string[],
    advice?: string,
    remarks: () => readonly string[] = () => [],
    becoming: () => void = () => undefined,
    held: (unopened: readonly string[]) => readonly string[] = () => [],
  ) {
    this.#remarks = remarks
    this.#becoming = becoming
    this.#held = held
    this.#states = states
    this.#sources = sources
    this.#advice = advice
  }

  judge(): Readiness {
    const states = this.#states()
    const held = this.#wasReady ? [] : this.#held(unopenedPorts(states))
    const judged = readiness(states, this.#sources, this.#wasReady, this.#advice, this.#remarks(), held)
    if (judged.ready && !this.#wasReady) this.#becoming()
    this.#wasReady ||= judged.ready
    return judged
  }
}

const isFirstStart = ({ state, restarts }: ActorState): boolean => state === 'starting' && restarts === 0

/** Describes an unhealthy actor; undefined for a healthy one. */
function fault(state: ActorState): string | undefined {
  const { name, health, ends, lastError } = state
  const last = lastError ? `, last: ${lastError.message}` : ''
  const times = ends === 1 ? 'once' : `${ends} times`
  const now = state.state === 'running' ? 'runs again' : state.state
  if (state.silentMs > 0 && state.state === 'running') return `actor ${name} has not answered for ${seconds(state.silentMs)} s`
  if (health === 'failing') return `actor ${name} keeps failing (${now}): ended ${times}${last}`
  if (health === 'unstable') return `actor ${name} ended ${times} recently (${now})${last}`
  return state.state === 'running' ? undefined : `actor ${name} is ${state.state}`
}

const seconds = (ms: number): string => String(Math.round(ms / 100) / 10)
