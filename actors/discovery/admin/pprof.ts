/** Writes V8's profiles in the format of pprof (`protocols/proto/perftools/profiles/profile.proto`), which its tools read compressed. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { ProfileSchema, type SampleSchema } from '../../../protocols/gen/perftools/profiles/profile_pb.js'
import { type ProfileKind, sampling, type ThreadProfile } from '../../../protocols/messages/profile.ts'

/** The profiles of threads by their names, and when they were recorded: Unix milliseconds and a duration in milliseconds. */
export interface Recorded {
  readonly kind: ProfileKind
  readonly threads: ReadonlyMap<string, ThreadProfile>
  readonly startedAt: number
  readonly durationMs: number
}

/** A place in a profile: a function, and where it stands. Lines count from 0. */
interface Frame {
  readonly functionName: string
  readonly url: string
  readonly lineNumber: number
}

/** A stack, as the path from a node to the root, with its values. */
interface Weighed {
  readonly stack: readonly Frame[]
  readonly values: readonly number[]
}

/** Frames that stand for no work of the thread. */
const outside: ReadonlySet<string> = new Set(['(root)', '(idle)'])

const units = {
  cpu: {
    types: [
      ['samples', 'count'],
      ['cpu', 'nanoseconds'],
    ],
    period: ['cpu', 'nanoseconds', sampling.cpuMicros * 1000],
  },
  heap: { types: [['inuse_space', 'bytes']], period: ['space', 'bytes', sampling.heapBytes] },
} as const

/** Returns one profile of all threads, compressed. Each sample has the label `thread`. */
export async function pprofOf({ kind, threads, startedAt, durationMs }: Recorded): Promise<Uint8Array> {
  const tables = new Tables()
  const valueType = ([type, unit]: readonly string[]) => ({ type: tables.text(type), unit: tables.text(unit) })
  const key = tables.text('thread')
  const sample = [...threads].flatMap(([thread, profile]) =>
    weighed(profile).map(
      ({ stack, values }): MessageInitShape<typeof SampleSchema> => ({
        locationId: stack.map((frame) => tables.location(frame)),
        value: values.map((value) => BigInt(Math.round(value))),
        label: [{ key, str: tables.text(thread) }],
      }),
    ),
  )
  const { types, period } = units[kind]
  const profile = create(ProfileSchema, {
    sampleType: types.map(valueType),
    sample,
    periodType: valueType(period.slice(0, 2) as string[]),
    period: BigInt(period[2]),
    timeNanos: BigInt(Math.round(startedAt)) * 1_000_000n,
    durationNanos: BigInt(Math.round(durationMs)) * 1_000_000n,
    ...tables.fields(),
  })
  return promisify(gzip)(toBinary(ProfileSchema, profile))
}

/** The texts, functions and locations of a profile, each once. */
class Tables {
  readonly #texts = new Map<string, bigint>([['', 0n]])
  readonly #frames = new Map<string, { readonly id: bigint; readonly frame: Frame }>()

  text(text = ''): bigint {
    const index = this.#texts.get(text) ?? BigInt(this.#texts.size)
    this.#texts.set(text, index)
    return index
  }

  location(frame: Frame): bigint {
    const key = JSON.stringify([frame.functionName, frame.url, frame.lineNumber])
    const known = this.#frames.get(key) ?? { id: BigInt(this.#frames.size + 1), frame }
    this.#frames.set(key, known)
    return known.id
  }

  /** The tables, when all texts and locations are in them. */
  fields() {
    const frames = [...this.#frames.values()].map(({ id, frame: { functionName, url, lineNumber } }) => {
      const name = this.text(functionName || '(anonymous)')
      return { id, name, filename: this.text(url), line: BigInt(lineNumber + 1) }
    })
    return {
      location: frames.map(({ id, line }) => ({ id, line: [{ functionId: id, line }] })),
      function: frames.map(({ id, name, filename, line }) => ({ id, name, systemName: name, filename, startLine: line })),
      stringTable: [...this.#texts.keys()],
    }
  }
}

function weighed(recorded: ThreadProfile): Weighed[] {
  return recorded.kind === 'heap' ? weighedAllocations(recorded.profile.head, []) : weighedTimes(recorded.profile)
}

type HeapNode = Extract<ThreadProfile, { kind: 'heap' }>['profile']['head']

function weighedAllocations({ callFrame, selfSize, children }: HeapNode, callers: readonly Frame[]): Weighed[] {
  const stack = outside.has(callFrame.functionName) ? callers : [callFrame, ...callers]
  const own = selfSize > 0 && stack.length > 0 ? [{ stack, values: [selfSize] }] : []
  return [...own, ...children.flatMap((child) => weighedAllocations(child, stack))]
}

/** The time between a sample and the next one is that of its stack. */
function weighedTimes({ nodes, samples = [], timeDeltas = [] }: Extract<ThreadProfile, { kind: 'cpu' }>['profile']): Weighed[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const callerOf = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
  const spent = new Map<number, { count: number; micros: number }>()
  for (const [index, id] of samples.entries()) {
    const at = spent.get(id) ?? { count: 0, micros: 0 }
    at.count++
    at.micros += Math.max(0, timeDeltas[index + 1] ?? sampling.cpuMicros)
    spent.set(id, at)
  }
  return [...spent].flatMap(([leaf, { count, micros }]) => {
    const stack: Frame[] = []
    for (let id: number | undefined = leaf; id !== undefined; id = callerOf.get(id)) {
      const frame = byId.get(id)?.callFrame
      if (frame && !outside.has(frame.functionName)) stack.push(frame)
    }
    return stack.length > 0 ? [{ stack, values: [count, micros * 1000] }] : []
  })
}
