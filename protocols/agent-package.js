// The package of the agent alone, for images of sidecars: what was built of it, and nothing that it has to install but the Node of the project.
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** Writes the package into dist-agent/. `built`: the built files that the agent consists of, below dist/. */
export function writeAgentPackage(root, built) {
  const folder = join(root, 'dist-agent')
  rmSync(folder, { recursive: true, force: true })
  const { version, license, type, engines, optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const about = {
    ...{ name: 'mesh-agent', version, private: true, license, type, engines },
    description: 'The agent of a service mesh: runs beside a workload, starts its Envoy and keeps its certificate renewed.',
    ...{ bin: { 'pilot-agent': 'bin/pilot-agent.js' }, optionalDependencies },
  }
  const manifests = ['help', 'autocomplete', 'not-found'].flatMap((name) =>
    ['package.json', 'oclif.manifest.json'].map((file) => `bin/plugins/${name}/${file}`),
  )
  const files = {
    ...Object.fromEntries(['bin/pilot-agent.js', 'bin/runtime.js', 'LICENSE'].map((path) => [path, path])),
    ...Object.fromEntries([...built, 'bin/agent/oclif.manifest.json', ...manifests].map((path) => [`dist/${path}`, `dist/${path}`])),
    'README.md': 'docs/agent.md',
  }
  for (const [to, from] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, to)), { recursive: true })
    copyFileSync(join(root, from), join(folder, to))
  }
  // The commands look for it beside them.
  for (const path of ['package.json', 'dist/package.json']) writeFileSync(join(folder, path), `${JSON.stringify(about, undefined, 2)}\n`)
}
