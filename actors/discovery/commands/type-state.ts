/** Whether proxies have what they are sent. */
import type { Proxy as ShownProxy, TypeState } from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { type Cell, coloured } from '../../../src/cli/table.ts'

/** Whether a proxy has what it is sent, of one type or of all. */
export type State = 'SYNCED' | 'STALE' | 'REJECTED' | 'NOT SENT'

const meanings = { SYNCED: 'good', STALE: 'warning', REJECTED: 'bad', 'NOT SENT': 'warning' } as const

/** The state of one type. */
export function typeState({ error, nonceSent, current }: TypeState): State {
  if (error !== '') return 'REJECTED'
  if (nonceSent === '') return 'NOT SENT'
  return current ? 'SYNCED' : 'STALE'
}

/** The state of a proxy: the worst of its types. Types of which there is nothing to send do not count beside others. */
export function stateOf({ types, refusals }: ShownProxy): State {
  const states = types.map(typeState)
  if (refusals.length > 0 || states.includes('REJECTED')) return 'REJECTED'
  return states.includes('STALE') || !states.includes('SYNCED') ? 'STALE' : 'SYNCED'
}

/** A state in a table. */
export const cellOf = (state: State): Cell => ({ text: state, means: meanings[state] })

/** A state in a line. */
export const stateText = (state: State, isColoured: boolean): string => coloured(state, meanings[state], isColoured)
