/** The actors of a service as a table: what each consumes and emits, and where it runs. */
import type { ActorDefinition } from './actor.ts'
import type { ActorSpec, SpawnMode } from './spawn.ts'

/** Names of the messages that a type consists of; `Messages` has every message that the actors of the service tell each other. */
type Named<Messages, Message> = { [N in keyof Messages]: [Messages[N]] extends [Message] ? N : never }[keyof Messages]
/** These names, all of them and no others. */
type Exactly<Messages, Names extends keyof Messages> = { readonly [N in Names]: true } & { readonly [N in Exclude<keyof Messages, Names>]?: never }

/** One kind of actor; `Definition` is what its module exports. A row that says something else of it than its module does not compile. */
export interface ActorRow<Messages, Definition> {
  /** Path in the folder of the service. */
  readonly module: string
  readonly consumes: Definition extends ActorDefinition<infer _, infer Message, infer __> ? Exactly<Messages, Named<Messages, Message>> : never
  readonly emits: Definition extends ActorDefinition<infer _, infer __, infer Told> ? Exactly<Messages, Named<Messages, Told>> : never
  readonly runs: SpawnMode
  /** The actors of this kind. */
  readonly actors: readonly {
    readonly name: string
    readonly config: Definition extends ActorDefinition<infer Config, infer _, infer __> ? Config : never
    readonly ended?: () => void
  }[]
}

/** A row of any kind of actor. */
export interface AnyRow {
  readonly module: string
  readonly consumes: Readonly<Record<string, true | undefined>>
  readonly emits: Readonly<Record<string, true | undefined>>
  readonly runs: SpawnMode
  readonly actors: readonly Omit<ActorSpec, 'module' | 'mode'>[]
}

/** The actors to start, and who is linked to whom. */
export interface Wiring {
  /** In the order in which they are started. */
  readonly actors: readonly ActorSpec[]
  /** Pairs of names: one of the two emits what the other consumes. */
  readonly links: readonly (readonly [string, string])[]
}

/** The wiring of a table. Two actors are linked where one emits what the other consumes. `moduleOf` finds a module by its path in a row. */
export function wire(rows: readonly AnyRow[], moduleOf: (path: string) => URL): Wiring {
  return {
    actors: rows.flatMap(({ module, runs, actors }) => actors.map((actor) => ({ ...actor, module: moduleOf(module), mode: runs }))),
    links: linksOf(rows),
  }
}

function linksOf(rows: readonly AnyRow[]): [string, string][] {
  const tells = (one: AnyRow, other: AnyRow) => Object.keys(one.emits).some((name) => other.consumes[name])
  return rows.flatMap((one, index) =>
    rows
      .slice(index + 1)
      .filter((other) => tells(one, other) || tells(other, one))
      .flatMap((other) => one.actors.flatMap(({ name }) => other.actors.map((peer): [string, string] => [name, peer.name]))),
  )
}
