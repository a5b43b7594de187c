/** `pilot-discovery push watch`: pushes of changes, as proxies answer them. */
import { toJson } from '@bufbuild/protobuf'
import { timestampMs } from '@bufbuild/protobuf/wkt'
import { type Push, PushSchema } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { printAnswer } from '../../../src/cli/folding.ts'
import { isColoured, print, terminalWidth } from '../../../src/cli/print.ts'
import { type Cell, coloured, sizeText, span } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { pushOrder, shortType } from '../../../src/xds/type-urls.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { type ServerFlags, serverOf, warnOfSilent } from './asked-server.ts'
import { objectText } from './object-rows.ts'

/** How long one question waits for a change, in milliseconds. */
const waitMs = 3000
/** After what time a push is shown although proxies have not answered, in milliseconds. */
const lateMs = 10_000
/** How long the objects are waited for that a refusal is blamed on, in milliseconds. */
const blameMs = 2000
/** Maximum number of pushes that are remembered: some times what a server keeps. */
const mostKnown = 1000
/** Maximum number of objects that a line names. */
const mostNamed = 3

/** A push as it was told last. */
interface Known {
  push: Push
  readonly since: number
  shown: 'not' | 'late' | 'settled'
}

/** Prints pushes until the process is told to end, or the reader of its output is gone. */
export async function pushWatch(flags: ServerFlags & { readonly namespace: string; readonly past: boolean }): Promise<void> {
  const client = new AdminClient(await serverOf(flags))
  const { namespace } = flags
  const signal = endOfWatch()
  const ask = (after: string, ms: number) => client.asked(client.rpcs.listPushes({ namespace, after, waitMs: ms }, { signal }))
  const watched = new WatchedPushes()
  const show = (pushes: readonly Push[]) => {
    for (const push of pushes) {
      if (flags.json) print(JSON.stringify(toJson(PushSchema, push)))
      else printAnswer(linesOf(push))
    }
  }
  try {
    const first = await ask('', 0)
    let silent = first.replicas
    warnOfSilent(silent)
    if (!flags.json) print(isNarrow() ? narrowHead : head)
    if (flags.past) show(watched.told(first.pushes, monotonicMs()))
    else watched.skip(first.pushes, monotonicMs())
    for (let after = first.cursor; !signal.aborted; ) {
      const { pushes, cursor, dropped, replicas } = await ask(after, waitMs)
      after = cursor
      warnOfSilent(replicas.filter(({ name }) => silent.find((replica) => replica.name === name)?.answered ?? true))
      silent = replicas
      if (dropped > 0) process.stderr.write(`Warning: ${count(dropped, 'push was', 'pushes were')} missed\n`)
      show(watched.told(pushes, monotonicMs()))
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Aborted when the process is to end, or when nobody reads its output any more. */
function endOfWatch(): AbortSignal {
  const ended = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => ended.abort())
  process.stdout.once('error', () => ended.abort())
  return ended.signal
}

/** Which pushes are to be shown. */
class WatchedPushes {
  readonly #known = new Map<string, Known>()

  /** Pushes are not shown before proxies have answered that owe an answer now. */
  skip(pushes: readonly Push[], now: number): void {
    for (const push of pushes) this.#knownOf(push, now).shown = isSettled(push) ? 'settled' : 'late'
  }

  /** Something changed of pushes. Returns those to show at `now` (monotonic milliseconds): settled ones, and ones that are not for too long. */
  told(pushes: readonly Push[], now: number): Push[] {
    for (const push of pushes) this.#knownOf(push, now).push = push
    const shown: Push[] = []
    for (const known of this.#known.values()) {
      const age = now - known.since
      // The objects that a refusal is blamed on are found somewhat later.
      const isWhole = age >= blameMs || known.push.refusals.every(({ objects }) => objects.length > 0)
      const is = isSettled(known.push) && isWhole ? 'settled' : age >= lateMs ? 'late' : 'not'
      if (known.shown === 'settled' || is === 'not' || is === known.shown) continue
      known.shown = is
      shown.push(known.push)
    }
    return shown
  }

  #knownOf(push: Push, now: number): Known {
    const key = `${push.id}/${push.replica}`
    let known = this.#known.get(key)
    if (!known) this.#known.set(key, (known = { push, since: now, shown: 'not' }))
    if (this.#known.size > mostKnown) this.#known.delete(this.#known.keys().next().value as string)
    return known
  }
}

/** Whether all proxies that a push concerns have answered it, or are gone. */
const isSettled = ({ applied, outstanding }: Push): boolean => applied && outstanding === 0

const widths = [13, 17, 11, 20, 9, 8, 8, 8] as const

/** A line of columns of fixed widths: the next line is not known yet. */
const row = (cells: readonly Cell[]): string =>
  cells
    .map((cell, column) => {
      const text = oneLine(typeof cell === 'string' ? cell : cell.text)
      const shown = typeof cell === 'string' ? text : coloured(text, cell.means, isColoured())
      return `${shown}${' '.repeat(Math.max(column === cells.length - 1 ? 0 : 1, (widths[column] ?? 0) - text.length))}`
    })
    .join('')
    .trimEnd()

/** The least width of a terminal on which the columns are beside each other, with twenty characters for the objects. */
const leastWidth = widths.reduce<number>((sum, each) => sum + each, 20)

/** Whether the columns have no place beside each other: some of them stand below the line of the push then. */
const isNarrow = (): boolean => terminalWidth() < leastWidth

const narrowHead = row(['TIME', 'REASON', 'PROXIES', 'LAST'])

const head = row(['TIME', 'REASON', 'PROXIES', 'RESOURCES', 'BYTES', '50 %', '99 %', 'LAST', 'OBJECTS'])

function linesOf(push: Push): string {
  const { startedAt, reasons, bytesSent, acknowledged, refused, outstanding, halfMs, mostMs, allMs, replica } = push
  const time = startedAt ? new Date(timestampMs(startedAt)).toISOString().slice(11, 23) : '-'
  const spans = [halfMs, mostMs, allMs].map((ms) => (acknowledged > 0 ? span(ms) : '-'))
  const objects = [...objectsOf(push), ...(replica === '' ? [] : [`at ${replica}`])].join(' ')
  const [half, most, all = '-'] = spans
  const bytes = sizeText(Number(bytesSent))
  const lines = isNarrow()
    ? [
        row([time, reasons.join(','), proxiesOf(push), all]),
        `  ${resourcesOf(push)}; ${bytes}; 50 % after ${half}, 99 % after ${most}`,
        `  ${objects}`,
      ]
    : [row([time, reasons.join(','), proxiesOf(push), resourcesOf(push), bytes, ...spans, objects])]
  const refusals = push.refusals.map(({ nodeId, typeUrl, reason, objects: blamed }) => {
    const made = blamed.length === 0 ? '' : ` (made from ${blamed.slice(0, mostNamed).map(objectText).join(', ')})`
    return `  ${oneLine(nameOfNode(nodeId))} refused ${shortType(typeUrl)}: ${oneLine(reason)}${made}`
  })
  const more = refused > refusals.length ? [`  and ${count(refused - refusals.length, 'more refusal')}`] : []
  const waiting = push.slowest.filter((proxy) => proxy.outstanding).slice(0, mostNamed)
  const names = waiting.map(({ nodeId }) => oneLine(nameOfNode(nodeId))).join(', ')
  const late =
    outstanding === 0
      ? []
      : [`  ${count(outstanding, 'proxy has', 'proxies have')} not answered: ${names}${outstanding > waiting.length ? ', ...' : ''}`]
  return [...lines, ...refusals, ...more, ...late].join('\n')
}

/** How many of the proxies that it concerns have a push. */
function proxiesOf({ acknowledged, refused, disconnected, outstanding }: Push): Cell {
  const text = `${acknowledged} of ${acknowledged + refused + disconnected + outstanding}`
  if (refused > 0) return { text, means: 'bad' }
  return outstanding > 0 ? { text, means: 'warning' } : text
}

/** How many resources were made or removed, by type: `rds 1, cds 2`. */
function resourcesOf({ types }: Push): string {
  const place = (typeUrl: string) => (pushOrder.includes(typeUrl) ? pushOrder.indexOf(typeUrl) : pushOrder.length)
  const sorted = [...types].sort((one, other) => place(one.typeUrl) - place(other.typeUrl))
  return sorted.map(({ typeUrl, resources, removed }) => `${shortType(typeUrl)} ${resources + removed}`).join(', ') || '-'
}

function objectsOf({ objects, otherObjects }: Push): string[] {
  const named = objects.slice(0, mostNamed).flatMap(({ object }) => (object ? objectText(object) : []))
  const more = objects.length + otherObjects - named.length
  return named.length === 0 ? ['-'] : [named.join(', '), ...(more > 0 ? [`and ${more} more`] : [])]
}
