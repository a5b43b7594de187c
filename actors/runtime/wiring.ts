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
  /** The actors of this kind that are there from the start to the end. */
  readonly actors: readonly RowActor<Definition>[]
}

/** An actor of a row. A configuration that is a function is called at every start of the actor. */
export interface RowActor<Definition> {
  readonly name: string
  readonly config: ConfigOf<Definition> | (() => ConfigOf<Definition>)
  readonly youngMib?: number
  readonly ended?: () => void
}

/** The configuration of an actor. */
type ConfigOf<Definition> = Definition extends ActorDefinition<infer Config, infer _, infer __> ? Config : never

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

/** An actor that comes while the others run, and the actors that it is linked to. */
export interface LateActor {
  readonly spec: ActorSpec
  readonly peers: readonly string[]
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

/**
 * Returns one more actor of a row of the table, which comes and goes while the others run. It is linked to the actors of the other rows, by
 * the same rule.
 */
export function wireLate(row: AnyRow, actor: AnyRow['actors'][number], rows: readonly AnyRow[], moduleOf: (path: string) => URL): LateActor {
  const others = rows.filter((other) => other !== row && areLinked(row, other))
  return { spec: { ...actor, module: moduleOf(row.module), mode: row.runs }, peers: others.flatMap(({ actors }) => actors.map(({ name }) => name)) }
}

const feeds = (one: AnyRow, other: AnyRow): boolean => Object.keys(one.emits).some((name) => other.consumes[name])
const areLinked = (one: AnyRow, other: AnyRow): boolean => feeds(one, other) || feeds(other, one)

function linksOf(rows: readonly AnyRow[]): [string, string][] {
  return rows.flatMap((one, index) =>
    rows
      .slice(index + 1)
      .filter((other) => areLinked(one, other))
      .flatMap((other) => one.actors.flatMap(({ name }) => other.actors.map((peer): [string, string] => [name, peer.name]))),
  )
}
