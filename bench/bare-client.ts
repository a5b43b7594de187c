/** Runs the bare client that lists, watches and parses objects of a cluster (`bare-watch.ts`), beside which following a cluster is measured. */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { ClusterAccess } from '../protocols/messages/orchestrator.ts'
import { meshPaths } from './cluster-config.ts'
import type { Usage } from './server.ts'

/** What is followed of another cluster. */
export const otherPaths = ['/api/v1/namespaces', '/api/v1/nodes', '/api/v1/services', '/api/v1/pods', '/apis/discovery.k8s.io/v1/endpointslices']
/** What is followed of the own cluster. */
export const ownPaths = [...otherPaths, ...meshPaths]

/** The threads with the most CPU seconds, the main thread aside. */
export const shown = (threads: Usage['threads']): string =>
  Object.entries(threads)
    .filter(([, seconds]) => seconds >= 0.05)
    .sort(([, one], [, other]) => other - one)
    .map(([name, seconds]) => `${name} ${seconds.toFixed(2)}`)
    .join(', ')

/** A running bare client. */
export class BareWatch {
  readonly #child: ChildProcess
  #text = ''
  readonly listed: Promise<{ objects: number; cpu: number }>

  /** `dir`: the folder of the cluster; `paths`: what is listed and watched. */
  constructor(access: ClusterAccess, dir: string, paths: readonly string[]) {
    const file = join(dir, 'bare.json')
    writeFileSync(file, JSON.stringify(access))
    const script = fileURLToPath(new URL('./bare-watch.ts', import.meta.url))
    this.#child = spawn(process.execPath, [script, access.server, file, ...paths], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#text += text))
    this.listed = this.#says(/^listed (\d+) (\d+)$/m).then(([, objects, micros]) => ({ objects: Number(objects), cpu: Number(micros) / 1e6 }))
  }

  /** Resolves with the wall-clock time of the first event with a text. */
  sees(text: string): Promise<number> {
    this.#child.stdin?.write(`${text}\n`)
    return this.#says(new RegExp(`^seen ${text.replaceAll('.', '\\.')} (\\d+)$`, 'm')).then(([, at]) => Number(at))
  }

  end(): void {
    this.#child.kill()
  }

  async #says(what: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const found = what.exec(this.#text)
      if (found) return found
      if (this.#child.exitCode !== null) throw new Error('the bare client ended')
      await pause(5)
    }
  }
}
