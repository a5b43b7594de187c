/** Reads files of untrusted type and size: never waits for the writer of a pipe, and never reads more than a limit. */
import { closeSync, constants, fstatSync, open, openSync, read, readSync, type Stats } from 'node:fs'
import { promisify } from 'node:util'

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

const openLater = promisify(open)
const readLater = promisify(read)

/**
 * Like {@link readBoundedFile}, but returns the bytes. `fstat` and `close` run on the calling thread, because handing them to Node's thread
 * pool costs more than they do. Each follows an answer of the file system, which keeps them from waiting for one.
 */
export async function readBoundedBytes(path: string, bounds: FileBounds): Promise<Buffer> {
  const descriptor = await openLater(path, openFlags(bounds))
  try {
    const pieces = piecesWithin(bounds, fstatSync(descriptor))
    while (pieces.add((await readLater(descriptor, pieces.next, 0, pieces.next.length, null)).bytesRead));
    return pieces.bytes()
  } finally {
    closeSync(descriptor)
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
  const taken: Buffer[] = []
  let total = 0
  const pieces = {
    // One byte more than the file's size, so that a file that grew after `stat` is noticed.
    next: Buffer.allocUnsafe(Math.min(found.size + 1, pieceBytes)),
    add(bytes: number): boolean {
      total += bytes
      if (total > most) throw tooLarge()
      taken.push(pieces.next.subarray(0, bytes))
      pieces.next = bytes < pieces.next.length ? pieces.next.subarray(bytes) : Buffer.allocUnsafe(pieceBytes)
      // Files of the kernel have more bytes than their size, which is 0.
      return bytes > 0 && total !== found.size
    },
    bytes: () => (taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken)),
  }
  return pieces
}
