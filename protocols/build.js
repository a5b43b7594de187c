// Builds the package into dist/: the commands, and JavaScript of the sources with the wire types, a file for each thread entry and what they share.
// Bundled because a thread would look for, read and link up to three hundred modules otherwise.
import { copyFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
/** Modules that are loaded by name: the commands, and what threads and pools run. All are in one folder, as they find each other. */
const discoveryActors = [
  'push-queue/push-queue',
  'xds-writer/xds-writer',
  'sources/files/file-watcher',
  'sources/files/parse-task',
  'sources/mock/mock-registry',
  'key-sets/jwks-resolver',
  'certificates/certificate-watcher',
  'identity/authenticator',
  'authority/certificate-authority',
  'authority/sign-task',
].map((name) => `actors/discovery/${name}.ts`)
const agentActors = ['dns/dns-server', 'sds/secret-agent', 'status/status-server', 'sts/token-service', 'xds-relay/xds-relay'].map(
  (name) => `actors/agent/${name}.ts`,
)
const commands = ['discovery-main', 'discovery-help', 'agent-main', 'agent-help'].map((name) => `bin/${name}.js`)
await build({
  absWorkingDir: root,
  entryPoints: [...commands, 'actors/runtime/thread.ts', ...discoveryActors, ...agentActors],
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node22.18',
  outdir: 'dist/bin',
  entryNames: '[name]',
  // These find files of their own beside them, or are loaded by name.
  external: ['@oclif/*', 'piscina'],
  banner: { js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)" },
  minifyWhitespace: true,
  minifySyntax: true,
  logLevel: 'warning',
})
for (const name of ['pilot-discovery.js', 'pilot-agent.js', 'runtime.js']) copyFileSync(join(root, 'bin', name), join(dist, 'bin', name))
copyFileSync(join(root, 'package.json'), join(dist, 'package.json'))
