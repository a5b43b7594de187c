/** Files of which only the name is known: a pipe is not waited for, and what has no end is not read to its end. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'

/** How a file is read. */
export interface FileBounds {
  /** Most bytes that it may have. */
  readonly most: number
  /** Throws an Error that says why a file cannot be used. Without it any regular file can. */
  readonly check?: (found: Stats) => void
  /** Whether the name may be a link. */
  readonly isNoLink?: boolean
}

/** What has the name of a file and is none: a directory, a pipe, a socket or a device. */
export class NoFile extends Error {}

/** Without waiting for the other end of a pipe, which a thread would do for ever, and with it the end of the process. */
const openFlags = ({ isNoLink }: FileBounds) => constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (isNoLink ? (constants.O_NOFOLLOW ?? 0) : 0)

const pieceBytes = 65_536

/** Reads a regular file as text. Rejects with an Error of the system, of the check, or that says what is wrong with the file; it does not always name the file. */
export async function readBoundedFile(path: string, bounds: FileBounds): Promise<string> {
  return (await readBoundedBytes(path, bounds)).toString('utf8')
}

/** As {@link readBoundedFile}, as bytes. */
export async function readBoundedBytes(path: string, bounds: FileBounds): Promise<Buffer> {
  const file = await open(path, openFlags(bounds))
  try {
    const pieces = piecesWithin(bounds, await file.stat())
    while (pieces.add((await file.read(pieces.next, 0, pieces.next.length)).bytesRead));
    return pieces.bytes()
  } finally {
    await file.close()
  }
}

/** As {@link readBoundedFile}, at once; throws. */
export function readBoundedFileSync(path: string, bounds: FileBounds): string {
  const descriptor = openSync(path, openFlags(bounds))
  try {
    const pieces = piecesWithin(bounds, fstatSync(descriptor))
    while (pieces.add(readSync(descriptor, pieces.next, 0, pieces.next.length, null)));
    return pieces.bytes().toString('utf8')
  } finally {
    closeSync(descriptor)
  }
}

/** What has been read of a file that may be read. `add` says whether there is more. */
function piecesWithin({ most, check }: FileBounds, found: Stats) {
  check?.(found)
  if (!found.isFile()) throw new NoFile('is not a file')
  const tooLarge = () => new Error(`has more than ${most} bytes`)
  if (found.size > most) throw tooLarge()
  const read: Buffer[] = []
  let total = 0
  const pieces = {
    // Most files fit; one that has grown meanwhile takes several.
    next: Buffer.allocUnsafe(Math.min(found.size + 1, pieceBytes)),
    add(bytes: number): boolean {
      total += bytes
      if (total > most) throw tooLarge()
      read.push(pieces.next.subarray(0, bytes))
      // What is left of a piece is enough to find that there is no more.
      pieces.next = bytes < pieces.next.length ? pieces.next.subarray(bytes) : Buffer.allocUnsafe(pieceBytes)
      return bytes > 0
    },
    bytes: () => (read.length === 2 && read[0] && read[1]?.length === 0 ? read[0] : Buffer.concat(read)),
  }
  return pieces
}
