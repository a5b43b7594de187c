/** The events of the proxies of all replicas, for streams about the service (docs/xds-protocol.md, G3, G4). */
import type { EventsOfAll, ProxyEventsAnswer, SharedEvent, SharedEvents } from '../../../protocols/messages/proxy-events.ts'
import { readCursors, writeCursors } from '../../../src/orchestrator/replica-cursors.ts'
import type { OtherReplicas } from './other-replicas.ts'
import type { PageSources } from './page-sources.ts'

/** How often the other replicas are asked while nothing happens here, in milliseconds. */
const lookMs = 1000

/** How long this replica waits, when another one begins to follow its events, until its writers report, in milliseconds: less than a question may take. */
const beginMs = 1500

const ownEvents = (sources: PageSources, cursor: string, waitMs: number): Promise<ProxyEventsAnswer> =>
  sources.distribution<ProxyEventsAnswer>('proxyEvents', cursor, waitMs)

/** What another replica is told of the events of this one. */
export async function sharedEvents(sources: PageSources, cursor: string): Promise<SharedEvents> {
  const { events, ...place } = await ownEvents(sources, cursor, cursor === '' ? beginMs : 0)
  return { ...place, events: events.map(({ message, ...event }) => ({ ...event, message: Buffer.from(message).toString('base64') })) }
}

/**
 * The events after a cursor at all replicas that answer; if there are none, waits for one here. With an empty cursor: the cursor to begin from. A
 * replica without a place in the cursor begins with this answer.
 */
export async function eventsOfAll(sources: PageSources, cursor: string, waitMs: number): Promise<EventsOfAll> {
  const { others } = sources
  return others ? withOthers(sources, others, cursor, waitMs) : { ...(await ownEvents(sources, cursor, waitMs)), followed: [], lost: '' }
}

async function withOthers(sources: PageSources, others: OtherReplicas, cursor: string, waitMs: number): Promise<EventsOfAll> {
  const before = readCursors(cursor)
  const here = before.get(others.own) ?? ''
  const [now, there] = await Promise.all([
    ownEvents(sources, here, here === '' ? waitMs : 0),
    others.askEach<SharedEvents>('proxyEvents', (replica) => [before.get(replica) ?? '']),
  ])
  const elsewhere = there.answers.flatMap(({ value }) => value.events.map(received))
  const hasNews = now.events.length > 0 || elsewhere.length > 0 || there.answers.some(({ value }) => value.isGap)
  const own = here === '' || hasNews ? now : await ownEvents(sources, now.cursor, Math.min(waitMs, lookMs))
  const cursors = new Map([[others.own, own.cursor], ...there.answers.map(({ replica, value }) => [replica, value.cursor] as const)])
  const reasons = new Map(there.replicas.map(({ name, reason }) => [name, reason]))
  const lost = [...before.keys()]
    .filter((replica) => !cursors.has(replica))
    .map((replica) => `${replica} (${reasons.get(replica) ?? 'it has ended'})`)
  return {
    events: [...own.events, ...elsewhere],
    cursor: writeCursors(cursors),
    isGap: now.isGap || own.isGap || there.answers.some(({ value }) => value.isGap),
    followed: [...cursors.keys()],
    lost: lost.join(', '),
  }
}

const received = ({ message, ...event }: SharedEvent) => ({ ...event, message: Buffer.from(message, 'base64') })
