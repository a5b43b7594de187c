/** Builds the certificate verifier in Go (`verify-certificate/main.go`), once per content of its source. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('./verify-certificate/main.go', import.meta.url))
const cache = fileURLToPath(new URL('../../.cache/', import.meta.url))

/** Returns the path of the program. Undefined when Go is not installed, which is an error under `CI=true`. */
export function goVerifier(): string | undefined {
  const program = `${cache}verify-certificate-${createHash('sha256').update(readFileSync(source)).digest('hex').slice(0, 16)}`
  if (existsSync(program)) return program
  mkdirSync(cache, { recursive: true })
  try {
    execFileSync('go', ['build', '-o', program, source], { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, GO111MODULE: 'off' } })
    return program
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || process.env.CI === 'true') throw error
    return undefined
  }
}
