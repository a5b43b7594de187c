/**
 * The one reader of files: never waits for the writer of a pipe, never reads more than a limit, gives up on a file system that does not
 * answer, and names the file in every error. The linter refuses other ways to read files.
 */
import { closeSync, constants, fstatSync, open, openSync, read, readSync, type Stats } from 'node:fs'
import { promisify } from 'node:util'
import { fileTimeouts } from './file-timeouts.ts'

/** Maximum size of a file with certificates, keys, tokens or settings, in bytes: far above what they have. */
const usualBytes = 1_048_576

/** Conditions on a file that is read. */
export interface FileBounds {
  /** Maximum size in bytes. Default: 1 MiB. */
  readonly most?: number
  /** Throws an Error with the reason when the file must not be used. Without it, any regular file is accepted. */
  readonly check?: (found: Stats) => void
  /** Whether a symbolic link is refused. */
  readonly refusesLinks?: boolean
  /** Timeouts of the operations. Default: those that the files of a thread share. Synchronous reading has none. */
  readonly timeouts?: Pick<typeof fileTimeouts, 'run'>
}

/** A file could not be read. The message is the path and the reason; `code` is that of the system's error. */
export class FileError extends Error {
  readonly reason: string
  readonly code: string | undefined
  constructor(path: string, cause: NodeJS.ErrnoException) {
    super(`${path}: ${cause.message}`, { cause })
    this.reason = cause.message
    this.code = cause.code
  }

  /** Returns an error about a file, with its name. */
  static of(path: string, error: unknown): FileError {
    return error instanceof FileError ? error : new FileError(path, error as Error)
  }
}

/** The path exists and is not a regular file: a directory, a pipe, a socket or a device. */
export class NotAFile extends FileError {
  constructor(path: string) {
    super(path, new Error('is not a file'))
  }
}

/** The file is larger than the maximum size. */
export class FileTooLarge extends FileError {
  constructor(path: string, most: number) {
    super(path, new Error(`has more than ${most} bytes`))
  }
}

/** Whether a file system error means that the file does not exist. After any other error it may exist. */
export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/**
 * Opening is non-blocking: otherwise opening a pipe without a writer would block the thread for ever, and with it the exit of the
 * process.
 */
const openFlags = ({ refusesLinks }: FileBounds) =>
  constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (refusesLinks ? (constants.O_NOFOLLOW ?? 0) : 0)

const pieceBytes = 65_536

/** Reads a regular file as UTF-8 text. Rejects with {@link FileError}. */
export async function readBoundedFile(path: string, bounds: FileBounds = {}): Promise<string> {
  return (await readBoundedBytes(path, bounds)).toString('utf8')
}

/** Like {@link readBoundedFile}, but resolves with undefined when the file does not exist. */
export async function readIfThere(path: string, bounds: FileBounds = {}): Promise<string | undefined> {
  try {
    return await readBoundedFile(path, bounds)
  } catch (error) {
    if (isGone(error)) return undefined
    throw error
  }
}

const openLater = promisify(open)
const readLater = promisify(read)

/** Like {@link readBoundedFile}, but returns the bytes. */
export async function readBoundedBytes(path: string, bounds: FileBounds = {}): Promise<Buffer> {
  const { timeouts = fileTimeouts } = bounds
  try {
    return await timeouts.run(() => readAll(path, bounds))
  } catch (error) {
    throw FileError.of(path, error)
  }
}

/**
 * `fstat` and `close` run on the calling thread, because handing them to Node's thread pool costs more than they do. Each follows an answer
 * of the file system, which keeps them from waiting for one.
 */
async function readAll(path: string, bounds: FileBounds): Promise<Buffer> {
  const descriptor = await openLater(path, openFlags(bounds))
  try {
    const pieces = piecesWithin(path, bounds, fstatSync(descriptor))
    while (pieces.add((await readLater(descriptor, pieces.next, 0, pieces.next.length, null)).bytesRead));
    return pieces.bytes()
  } finally {
    closeSync(descriptor)
  }
}

/** Like {@link readBoundedFile}, but synchronous; throws. */
export function readBoundedFileSync(path: string, bounds: FileBounds = {}): string {
  try {
    const descriptor = openSync(path, openFlags(bounds))
    try {
      const pieces = piecesWithin(path, bounds, fstatSync(descriptor))
      while (pieces.add(readSync(descriptor, pieces.next, 0, pieces.next.length, null)));
      return pieces.bytes().toString('utf8')
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    throw FileError.of(path, error)
  }
}

/** Returns what `make` makes of the content of a file. Errors thrown are thrown with the name of the file. */
export function inFile<T>(path: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw FileError.of(path, error)
  }
}

/** Accumulates the content of a file that passed the checks. `add` returns whether there may be more to read. */
function piecesWithin(path: string, { most = usualBytes, check }: FileBounds, found: Stats) {
  check?.(found)
  if (!found.isFile()) throw new NotAFile(path)
  if (found.size > most) throw new FileTooLarge(path, most)
  const taken: Buffer[] = []
  let total = 0
  const pieces = {
    // One byte more than the file's size, so that a file that grew after `stat` is noticed.
    next: Buffer.allocUnsafe(Math.min(found.size + 1, pieceBytes)),
    add(bytes: number): boolean {
      total += bytes
      if (total > most) throw new FileTooLarge(path, most)
      taken.push(pieces.next.subarray(0, bytes))
      pieces.next = bytes < pieces.next.length ? pieces.next.subarray(bytes) : Buffer.allocUnsafe(pieceBytes)
      // Files of the kernel have more bytes than their size, which is 0.
      return bytes > 0 && total !== found.size
    },
    bytes: () => (taken.length === 1 && taken[0] ? taken[0] : Buffer.concat(taken)),
  }
  return pieces
}
