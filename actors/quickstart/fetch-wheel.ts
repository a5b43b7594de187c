/** Fetches packages of the Python package index with pip, and accepts those with a known hash only. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A package and the SHA-256 hashes that its wheel may have. */
export interface WantedWheel {
  readonly name: string
  readonly version: string
  readonly hashes: readonly string[]
}

/** The environment of pip, and what ends it early. */
export interface FetchOptions {
  readonly env: NodeJS.ProcessEnv
  readonly signal?: AbortSignal | undefined
}

/** What a program has said on standard error when it ended with another status than 0; undefined when it succeeded. */
type Failure = { readonly code?: string | undefined; readonly message: string } | undefined

/** The most of pip's errors that is kept, in characters. */
const mostSaid = 100_000

/**
 * Fetches the wheel of a package, if it has one of the hashes, and calls `use` with its path, which is removed afterwards. Resolves with the
 * reason when there is none, or with what `use` does.
 */
export async function withWheel(
  { name, version, hashes }: WantedWheel,
  options: FetchOptions,
  use: (wheel: string) => string | undefined | Promise<string | undefined>,
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-fetch-'))
  try {
    // pip takes hashes from a file only.
    const requirements = join(folder, 'requirements.txt')
    writeFileSync(requirements, `${name}==${version} ${hashes.map((hash) => `--hash=sha256:${hash}`).join(' ')}\n`)
    const flags = ['--quiet', '--no-deps', '--disable-pip-version-check', '--retries', '2', '--only-binary=:all:', '--require-hashes']
    const failure = await runPython(['-m', 'pip', 'download', ...flags, '-d', folder, '-r', requirements], options)
    if (failure) return `${name} ${version} ${reasonOf(failure)}`
    return await use(join(folder, readdirSync(folder).find((file) => file.endsWith('.whl')) ?? ''))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Runs Python to its end. */
export function runPython(args: readonly string[], { env, signal }: FetchOptions): Promise<Failure> {
  return new Promise((resolve) => {
    const child = spawn('python3', args, { stdio: ['ignore', 'ignore', 'pipe'], env, signal })
    let said = ''
    child.stderr.on('data', (bytes) => (said = (said + bytes).slice(-mostSaid)))
    child.on('error', ({ code, message }: NodeJS.ErrnoException) => resolve({ code, message }))
    child.on('close', (status) => resolve(status === 0 ? undefined : { message: said }))
  })
}

/** Returns why pip has failed. */
function reasonOf({ code, message }: NonNullable<Failure>): string {
  const got = /\bGot\s+([0-9a-f]{64})/.exec(message)?.[1]
  if (got) return `is refused: the package has the SHA-256 ${got}, which is none of the known ones; it was changed or is for another platform`
  return `could not be fetched: ${causeOf(message, code)}`
}

function causeOf(message: string, code: string | undefined): string {
  if (code === 'ABORT_ERR') return 'interrupted'
  if (code === 'ENOENT') return 'there is no python3'
  if (/No module named pip/.test(message)) return 'python3 has no pip'
  // pip says after this that there is no such package.
  if (/NewConnectionError|NameResolutionError|ConnectTimeoutError|ProxyError|Network is unreachable/.test(message))
    return 'the Python package index cannot be reached from here'
  return message.trim().split('\n').at(-1) ?? ''
}
