/**
 * Reads and changes the network configuration of the host. Each command that changes it is printed before it runs; a dry run only prints
 * (docs/agent.md, R7).
 */
import { randomBytes } from 'node:crypto'
import { rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ExitError } from '../../../src/cli/exit-status.ts'
import { type Listing, readListing } from '../../../src/iptables/listing.ts'
import type { Family } from '../../../src/iptables/ranges.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { failedRules } from './host.ts'
import type { HostAccess, Outcome, Program, RunProgram } from './programs.ts'

/** Exit status of a command that could not write the rules file. */
const failedFile = 1

/** How long iptables-restore waits for the xtables lock, in seconds. */
const lockWaitSeconds = 30

/** The rules of one address family as input of iptables-restore, and their printed form: that input, or single commands. */
export interface RuleChange {
  readonly family: Family
  readonly text: string
  readonly commands: 'restore-format' | readonly string[]
  /** Input of iptables-restore that takes the change back. Empty when the change replaces rules of an earlier run, and can stay. */
  readonly undo: string
}

/** Rules with the path of the file that iptables-restore reads. With an empty path it reads them from standard input. */
type RuleSource = RuleChange & { readonly path: string }

const tool = (family: Family, what: 'save' | 'restore'): Program => `${family === 6 ? 'ip6tables' : 'iptables'}-${what}`

export class Network {
  readonly #run: RunProgram
  readonly isDryRun: boolean
  readonly #say: (line: string) => void

  constructor({ run, say }: HostAccess, isDryRun: boolean) {
    this.#run = run
    this.isDryRun = isDryRun
    this.#say = say
  }

  /** Returns the rules of an address family. Undefined in a dry run. Throws an ExitError when the rules cannot be read. */
  rules(family: Family): Listing | undefined {
    return this.#rulesOf(family, this.#runUnlessDry(tool(family, 'save'), []))
  }

  /** Like {@link rules}, but undefined too where the host does not have the program. */
  rulesIfAny(family: Family): Listing | undefined {
    const found = this.#runUnlessDry(tool(family, 'save'), [])
    return found?.isAbsent ? undefined : this.#rulesOf(family, found)
  }

  #rulesOf(family: Family, found: Outcome | undefined): Listing | undefined {
    if (found?.error) throw failure(tool(family, 'save'), [], found.error)
    return found && readListing(found.output)
  }

  /** Returns the output of `ip`. Empty in a dry run and when the command fails. */
  ip(...args: string[]): string {
    return this.#runUnlessDry('ip', args)?.output ?? ''
  }

  /** Runs `ip`. Throws an ExitError when the command fails; when it concerned a route, all routes are printed first. */
  changeIp(args: readonly string[]): void {
    this.#echo('ip', args)
    if (this.isDryRun) return
    const { error } = this.#run('ip', args)
    if (error === '') return
    if (args.includes('route')) this.show('ip', ['route', 'show', 'table', 'all'])
    throw failure('ip', args, error)
  }

  /**
   * Applies the rules of all address families in the given order. All rules are tested first, so that a fault in one leaves everything
   * unchanged, and what was applied is taken back when a later one fails. The rules of a table are replaced atomically. Throws an ExitError
   * that names the command that failed.
   */
  apply(changes: readonly RuleChange[]): void {
    const needed = changes.filter(({ text }) => text !== '')
    const sources = needed.map((change) => ({ ...change, path: change.commands === 'restore-format' ? join(tmpdir(), fileName()) : '' }))
    const written: string[] = []
    const applied: RuleSource[] = []
    try {
      if (!this.isDryRun) {
        for (const { path, text } of sources)
          if (path !== '') {
            writeRules(path, text)
            written.push(path)
          }
        for (const source of sources) this.#restore(source, ['--test'])
      }
      for (const source of sources) {
        this.#sayRules(source)
        if (this.isDryRun) continue
        this.#restore(source, [])
        applied.push(source)
      }
    } catch (error) {
      for (const { family, undo } of applied.reverse()) if (undo !== '') this.#run(tool(family, 'restore'), restoreArgs, undo)
      throw error
    } finally {
      for (const path of written) rmSync(path, { force: true })
    }
  }

  /** Whether the rules of a family can be written; true in a dry run. */
  accepts(change: RuleChange): boolean {
    return this.isDryRun || this.#run(tool(change.family, 'restore'), [...restoreArgs, '--test'], change.text).error === ''
  }

  /** Prints a command and, outside a dry run, its output. */
  show(program: Program, args: readonly string[] = []): void {
    this.#echo(program, args)
    const shown = this.#runUnlessDry(program, args)
    if (shown && shown.output !== '') this.#say(shown.output.trimEnd())
  }

  #sayRules({ family, path, text, commands }: RuleSource): void {
    if (commands === 'restore-format') {
      this.#say(`Writing following contents to rules file: ${path}`)
      this.#say(text)
      this.#echo(tool(family, 'restore'), [...restoreArgs, path])
      return
    }
    for (const line of commands) this.#say(line)
    this.#say(`# applied at once, by ${tool(family, 'restore')} ${restoreArgs.join(' ')}`)
  }

  #restore({ family, path, text }: RuleSource, options: readonly string[]): void {
    const args = [...restoreArgs, ...options, ...(path === '' ? [] : [path])]
    const { error } = this.#run(tool(family, 'restore'), args, path === '' ? text : '')
    if (error !== '') throw failure(tool(family, 'restore'), args, error)
  }

  #runUnlessDry(program: Program, args: readonly string[]): Outcome | undefined {
    return this.isDryRun ? undefined : this.#run(program, args)
  }

  #echo(program: Program, args: readonly string[]): void {
    this.#say([program, ...args].join(' '))
  }
}

const restoreArgs = ['--noflush', `--wait=${lockWaitSeconds}`]

const failure = (program: string, args: readonly string[], error: string) =>
  new ExitError(`${[program, ...args].join(' ')} failed: ${error}`, failedRules)

/** Returns a unique file name: a time in nanoseconds and a random number. */
const fileName = () => `iptables-rules-${Math.round(monotonicMs() * 1e6)}.txt${randomBytes(6).toString('hex')}`

function writeRules(path: string, text: string): void {
  try {
    writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw new ExitError(`the rules cannot be written to ${path}: ${(error as Error).message}`, failedFile)
  }
}
