/** Destinations of the log: a descriptor, a file, a rotating file. A write may fail, but never waits for a reader. */
import { closeSync, constants, fstatSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** A destination for bytes. Every method may throw an Error with a `code` of the operating system; EAGAIN means to retry later. */
export interface Output {
  /** Writes as many bytes as possible and returns their number. */
  write(bytes: Buffer): number
  /** Closes the file; the next write opens it again. */
  close(): void
}

/** Standard output or standard error. */
export class DescriptorOutput implements Output {
  readonly #given: number
  #descriptor: number | undefined

  constructor(descriptor: number) {
    this.#given = descriptor
  }

  write(bytes: Buffer): number {
    this.#descriptor ??= withoutWaiting(this.#given)
    return writeSync(this.#descriptor, bytes)
  }

  close(): void {}
}

/**
 * Opens the same pipe or terminal in non-blocking mode, so that a reader that stops reading does not block the thread. The given
 * descriptor is left unchanged, because other processes share it.
 */
function withoutWaiting(descriptor: number): number {
  try {
    const status = fstatSync(descriptor)
    if (!status.isFIFO() && !status.isCharacterDevice()) return descriptor
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return descriptor
  }
}

/** A file that is appended to. The file and its directory are created when missing. */
export class FileOutput implements Output {
  readonly path: string
  #descriptor: number | undefined
  #mode: number

  constructor(path: string, mode = 0o644) {
    this.path = path
    this.#mode = mode
  }

  write(bytes: Buffer): number {
    return writeSync(this.#open(), bytes)
  }

  /** Size of the file in bytes. */
  size(): number {
    return fstatSync(this.#open()).size
  }

  /** Closes the file. The next file is created with the mode that this one had. */
  close(): void {
    const descriptor = this.#descriptor
    this.#descriptor = undefined
    if (descriptor === undefined) return
    this.#mode = fstatSync(descriptor).mode & 0o777
    closeSync(descriptor)
  }

  #open(): number {
    if (this.#descriptor !== undefined) return this.#descriptor
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o744 })
    const { O_WRONLY, O_APPEND, O_CREAT, O_NONBLOCK, O_NOCTTY } = constants
    this.#descriptor = openSync(this.path, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK | O_NOCTTY, this.#mode)
    return this.#descriptor
  }
}
