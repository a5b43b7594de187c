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

/** Without waiting for the other end of a pipe, which a thread would do for ever, and with it the end of the process. */
const openFlags = ({ isNoLink }: FileBounds) => constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (isNoLink ? (constants.O_NOFOLLOW ?? 0) : 0)

const pieceBytes = 65_536

/** Reads a regular file as text. Rejects with an Error of the system, of the check, or that says what is wrong with the file; it does not always name the file. */
export async function readBoundedFile(path: string, bounds: FileBounds): Promise<string> {
  const file = await open(path, openFlags(bounds))
  try {
    const pieces = piecesWithin(bounds, await file.stat())
    while (pieces.add((await file.read(pieces.next, 0, pieceBytes)).bytesRead));
    return pieces.text()
  } finally {
    await file.close()
  }
}

/** As {@link readBoundedFile}, at once; throws. */
export function readBoundedFileSync(path: string, bounds: FileBounds): string {
  const descriptor = openSync(path, openFlags(bounds))
  try {
    const pieces = piecesWithin(bounds, fstatSync(descriptor))
    while (pieces.add(readSync(descriptor, pieces.next, 0, pieceBytes, null)));
    return pieces.text()
  } finally {
    closeSync(descriptor)
  }
}

/** What has been read of a file that may be read. `add` says whether there is more. */
function piecesWithin({ most, check }: FileBounds, found: Stats) {
  check?.(found)
  if (!found.isFile()) throw new Error('is not a file')
  const tooLarge = () => new Error(`has more than ${most} bytes`)
  if (found.size > most) throw tooLarge()
  const read: Buffer[] = []
  let total = 0
  const pieces = {
    next: Buffer.allocUnsafe(pieceBytes),
    add(bytes: number): boolean {
      total += bytes
      if (total > most) throw tooLarge()
      read.push(pieces.next.subarray(0, bytes))
      pieces.next = Buffer.allocUnsafe(pieceBytes)
      return bytes > 0
    },
    text: () => Buffer.concat(read).toString('utf8'),
  }
  return pieces
}
