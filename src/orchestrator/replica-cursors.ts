/** The cursors of several replicas as one text, with which a caller asks on from where each of them was (docs/operation.md, A5). */

/** The length of a text that is read, in characters, and the number of replicas in it. */
const most = { length: 32_768, replicas: 64 }

/** The cursors by replica that a text has; what is none is left out. */
export function readCursors(text: string): ReadonlyMap<string, string> {
  const parts = text.slice(0, most.length).split(',', most.replicas)
  return new Map(
    parts.flatMap((part) =>
      [/^([^=]+)=(.+)$/.exec(part) ?? []].flatMap(([, replica, cursor]) => (replica && cursor ? [[replica, cursor] as const] : [])),
    ),
  )
}

/** Writes cursors for {@link readCursors}. */
export const writeCursors = (cursors: Iterable<readonly [replica: string, cursor: string]>): string =>
  Array.from(cursors, ([replica, cursor]) => `${replica}=${cursor}`).join()
