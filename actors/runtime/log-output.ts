/** Where bytes of the log go: a descriptor, a file, a file that rotates. Each write may fail; none waits for a reader. */
import { closeSync, constants, fstatSync, mkdirSync, openSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** A place for bytes. Every method may throw an Error with a `code` of the operating system; EAGAIN means later. */
export interface Output {
  /** Writes what it can and gives the number of bytes. */
  write(bytes: Buffer): number
  /** Lets go of the file; the next write opens it anew. */
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
 * A descriptor of the same pipe or terminal that gives EAGAIN instead of waiting for a reader: a reader that stands still must
 * not hold up the thread. The given descriptor stays as it is, since other processes share it.
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

/** A file that is added to; it and its directory are made when they are missing. */
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

  /** Bytes in the file. */
  size(): number {
    return fstatSync(this.#open()).size
  }

  /** Closes the file; the next has the mode that this one had. */
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
