/** The table of a service's actors: what each kind consumes and emits, and where it runs. */
import type { ActorDefinition } from './actor.ts'
import type { ActorSpec, SpawnMode } from './spawn.ts'

/** Names of the messages in a union type. `Messages` maps the names of all messages between the service's actors to their types. */
type Named<Messages, Message> = { [N in keyof Messages]: [Messages[N]] extends [Message] ? N : never }[keyof Messages]
/** A record with exactly these names. */
type Exactly<Messages, Names extends keyof Messages> = { readonly [N in Names]: true } & { readonly [N in Exclude<keyof Messages, Names>]?: never }

/**
 * The row of one kind of actor. `Definition` is the type of the definition that its module exports; a row that contradicts it does not
 * compile.
 */
export interface ActorRow<Messages, Definition> {
  /** Path of the module, relative to the folder of the service. */
  readonly module: string
  readonly consumes: Definition extends ActorDefinition<infer _, infer Message, infer __> ? Exactly<Messages, Named<Messages, Message>> : never
  readonly emits: Definition extends ActorDefinition<infer _, infer __, infer Sent> ? Exactly<Messages, Named<Messages, Sent>> : never
  readonly runs: SpawnMode
  /** The actors of this kind. */
  readonly actors: readonly {
    readonly name: string
    readonly config: Definition extends ActorDefinition<infer Config, infer _, infer __> ? Config : never
    readonly youngMib?: number
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

/** The actors to start and the links between them. */
export interface Wiring {
  /** In the order of their start. */
  readonly actors: readonly ActorSpec[]
  /** Pairs of actor names where one actor emits a message that the other consumes. */
  readonly links: readonly (readonly [string, string])[]
}

/**
 * Returns the wiring of a table. Two actors are linked when one emits a message that the other consumes. `moduleOf` resolves the path of
 * a module in a row.
 */
export function wire(rows: readonly AnyRow[], moduleOf: (path: string) => URL): Wiring {
  return {
    actors: rows.flatMap(({ module, runs, actors }) => actors.map((actor) => ({ ...actor, module: moduleOf(module), mode: runs }))),
    links: linksOf(rows),
  }
}

function linksOf(rows: readonly AnyRow[]): [string, string][] {
  const feeds = (one: AnyRow, other: AnyRow) => Object.keys(one.emits).some((name) => other.consumes[name])
  return rows.flatMap((one, index) =>
    rows
      .slice(index + 1)
      .filter((other) => feeds(one, other) || feeds(other, one))
      .flatMap((other) => one.actors.flatMap(({ name }) => other.actors.map((peer): [string, string] => [name, peer.name]))),
  )
}
