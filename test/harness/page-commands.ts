/** The commands of pages of the documentation, which tests run at real clusters as a reader would. */
import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildHelm } from '../chart/helm.js'
import type { TestCluster } from './cluster.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The commands of each section of a page, by its heading. */
export function commandsOf(page: string): Map<string, string[]> {
  const sections = page.split(/^## /m).slice(1)
  return new Map(
    sections.map((section) => {
      const blocks = [...section.matchAll(/^```console\n(.*?)^```/gms)].map(([, block = '']) => block)
      return [section.split('\n')[0] ?? '', blocks.flatMap((block) => [...block.matchAll(/^\$ (.*)$/gm)].map(([, command = '']) => command))]
    }),
  )
}

/**
 * Runs commands from the top folder, with the programs of a cluster and a file with the connections of kubectl. Returns the output of each by its
 * text. Throws an Error with what a command said when it fails.
 */
export function runCommands(commands: readonly string[], { dir, bin }: TestCluster, kubeconfig: string): Map<string, string> {
  const home = join(dir, 'home')
  mkdirSync(home, { recursive: true })
  const env = { HOME: home, KUBECONFIG: kubeconfig, PATH: `${dirname(buildHelm())}:${bin}:${process.env.PATH}` }
  return new Map(
    commands.map((command) => {
      const { status, stdout, stderr } = spawnSync('bash', ['-o', 'pipefail', '-c', command], { cwd: root, env, encoding: 'utf8' })
      if (status !== 0) throw new Error(`${command}: ${stdout}${stderr}`)
      return [command, stdout]
    }),
  )
}
