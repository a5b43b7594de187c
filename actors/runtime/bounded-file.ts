/** Reads files of untrusted type and size: never waits for the writer of a pipe, and never reads more than a limit. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'
import { open } from 'node:fs/promises'

/** Conditions on a file that is read. */
export interface FileBounds {
  /** Maximum size in bytes. */
  readonly most: number
  /** Throws an Error with the reason when the file must not be used. Without it, any regular file is accepted. */
  readonly check?: (found: Stats) => void
  /** Whether a symbolic link is refused. */
  readonly refusesLinks?: boolean
}

/** The path exists and is not a regular file: a directory, a pipe, a socket or a device. */
export class NotAFile extends Error {}

/**
 * Opening is non-blocking: otherwise opening a pipe without a writer would block the thread for ever, and with it the exit of the
 * process.
 */
const openFlags = ({ refusesLinks }: FileBounds) =>
  constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (refusesLinks ? (constants.O_NOFOLLOW ?? 0) : 0)

const pieceBytes = 65_536

/**
 * Reads a regular file as UTF-8 text. Rejects with a system error, with the error of `check`, or with an Error that says what is wrong
 * with the file. The error does not always name the file.
 */
export async function readBoundedFile(path: string, bounds: FileBounds): Promise<string> {
  return (await readBoundedBytes(path, bounds)).toString('utf8')
}

/** Like {@link readBoundedFile}, but returns the bytes. */
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

/** Like {@link readBoundedFile}, but synchronous; throws. */
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

/** Accumulates the content of a file that passed the checks. `add` returns whether there may be more to read. */
function piecesWithin({ most, check }: FileBounds, found: Stats) {
  check?.(found)
  if (!found.isFile()) throw new NotAFile('is not a file')
  const tooLarge = () => new Error(`has more than ${most} bytes`)
  if (found.size > most) throw tooLarge()
  const read: Buffer[] = []
  let total = 0
  const pieces = {
    // One byte more than the file's size, so that a file that grew after `stat` is noticed.
    next: Buffer.allocUnsafe(Math.min(found.size + 1, pieceBytes)),
    add(bytes: number): boolean {
      total += bytes
      if (total > most) throw tooLarge()
      read.push(pieces.next.subarray(0, bytes))
      pieces.next = bytes < pieces.next.length ? pieces.next.subarray(bytes) : Buffer.allocUnsafe(pieceBytes)
      // Files of the kernel have more bytes than their size, which is 0.
      return bytes > 0 && total !== found.size
    },
    bytes: () => (read.length === 1 && read[0] ? read[0] : Buffer.concat(read)),
  }
  return pieces
}
