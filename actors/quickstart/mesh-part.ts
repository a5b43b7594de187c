/** A part of the mesh that is a process: the control plane, or an agent with its Envoy. */
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ProxyEnd } from '../../src/agent/proxy-end.ts'
import { GuardedProcess } from '../agent/proxy-process/guarded-process.ts'
import { readBoundedFile } from '../runtime/bounded-file.ts'

/** How long a part may take to end, in milliseconds: an agent drains, and its Envoy has two seconds. */
const endMs = 10_000
/** The lines of a log that an error shows. */
const shownLines = 12

/** What a part runs. */
export interface PartCommand {
  readonly name: string
  readonly script: string
  readonly args: readonly string[]
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  /** The file of its output. */
  readonly log: string
}

/** A part has ended by itself. The lines are printed below the message. */
class PartEnded extends Error {
  readonly lines: readonly string[]

  constructor(message: string, lines: readonly string[]) {
    super(message)
    this.lines = lines
  }
}

/** A running part. */
export class MeshPart {
  /** Resolves when the process has ended. */
  readonly ended: Promise<ProxyEnd>
  readonly #command: PartCommand
  readonly #process: GuardedProcess

  constructor(command: PartCommand, guard: readonly string[]) {
    this.#command = command
    const { script, args, cwd, env, log } = command
    mkdirSync(dirname(log), { recursive: true })
    const output = openSync(log, 'a', 0o600)
    try {
      this.#process = new GuardedProcess({ path: process.execPath, args: [script, ...args], env, cwd, output }, guard, () => undefined)
    } finally {
      closeSync(output)
    }
    this.ended = this.#process.ended
  }

  /** Returns the error to report when the process has ended by itself: how, and the last lines of its log. */
  async fault({ status, signal }: ProxyEnd): Promise<Error> {
    const { name, log } = this.#command
    const lines = (await readBoundedFile(log, { most: 50_000_000 }).catch(String)).trimEnd().split('\n').slice(-shownLines)
    return new PartEnded(`${name} ended ${signal === null ? `with status ${status}` : `by ${signal}`}; its last lines:`, lines)
  }

  end(): Promise<void> {
    return this.#process.end(endMs, () => undefined)
  }
}
