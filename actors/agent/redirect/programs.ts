/**
 * Runs the programs that change the network of a host. They are searched in fixed system folders and not in PATH, because they run as root.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { print } from '../../../src/cli/print.ts'
import { type KernelIpv6, kernelIpv6 } from '../kernel-ipv6.ts'
import { readHost } from './host.ts'

/** The names of the programs. */
export type Program = 'ip' | `ip${'' | '6'}tables-${'save' | 'restore'}`

/**
 * The environment of the redirect commands, replaceable in tests: facts of the host, its programs, and the outputs for commands and
 * warnings.
 */
export interface HostAccess {
  readonly readHost: typeof readHost
  readonly kernelIpv6: () => KernelIpv6
  readonly run: RunProgram
  readonly say: (line: string) => void
  readonly warn: (line: string) => void
}

const folders = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/** The timeout of a program in milliseconds, for example while it waits for the xtables lock. The program is then killed. */
const longestRunMs = 60_000

/** The outcome of a program. `error` is empty when the program exited with status 0. */
export interface Outcome {
  readonly output: string
  readonly error: string
  /** Whether the host does not have the program. */
  readonly isAbsent?: boolean
}

/** Runs a program to its end, with `input` as its standard input. */
export type RunProgram = (program: Program, args: readonly string[], input?: string) => Outcome

/** Runs a program of this host. A missing program is an outcome with an error. */
const runProgram: RunProgram = (program, args, input = '') => {
  const path = folders.map((folder) => join(folder, program)).find(isExecutable)
  if (path === undefined) return { output: '', error: `${program} is not on this host (looked in ${folders.join(', ')})`, isAbsent: true }
  const env = { PATH: folders.join(':'), LC_ALL: 'C' }
  const limits = { timeout: longestRunMs, maxBuffer: 2 ** 28 }
  const { status, signal, stdout, stderr, error } = spawnSync(path, args, { env, input, encoding: 'utf8', ...limits })
  if (status === 0) return { output: stdout, error: '' }
  const how = error ? error.message : signal ? `ended by ${signal}` : `status ${status}`
  return { output: stdout ?? '', error: [how, stderr?.trim()].filter(Boolean).join(': ') }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The host itself, with standard output and standard error of this process. */
export const realHost: HostAccess = { readHost, kernelIpv6, run: runProgram, say: print, warn: (line) => void process.stderr.write(`${line}\n`) }
