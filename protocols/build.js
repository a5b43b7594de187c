// Builds the package into dist/: the commands, and JavaScript of the sources with the wire types, a file for each thread entry and what they share.
// Bundled because a thread would look for, read and link up to three hundred modules otherwise.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
const named = (folder, names) => names.map((name) => `${folder}/${name}`)
/** Modules that are loaded by name: the commands, and what threads and pools run. All are in one folder, as they find each other. */
const discovery = [
  ...named('bin', ['discovery-main.js', 'discovery-help.js']),
  'actors/runtime/thread.ts',
  'actors/http/fetch-task.ts',
  ...named('actors/discovery', [
    'push-queue/push-queue.ts',
    'xds-writer/xds-writer.ts',
    'sources/files/file-watcher.ts',
    'sources/files/parse-task.ts',
    'sources/mock/mock-registry.ts',
    'key-sets/jwks-resolver.ts',
    'certificates/certificate-watcher.ts',
    'identity/authenticator.ts',
    'authority/certificate-authority.ts',
    'authority/sign-task.ts',
  ]),
]
/** Every module of the agent that is an actor: it loads those that it starts. */
const agentActors = readdirSync(join(root, 'actors/agent'), { recursive: true })
  .map((name) => `actors/agent/${name}`)
  .filter((name) => name.endsWith('.ts') && /^export const actor\b/m.test(readFileSync(join(root, name), 'utf8')))
const agent = [...named('bin', ['agent-main.js', 'agent-help.js']), ...agentActors]
/** A static import of a module of Node, as the bundler writes it: of names, of a namespace, of the whole. */
const builtInImport = /\bimport(?:\{([^}]*)\}|\*as ([\w$]+) | ([\w$]+) )from"(node:[\w/]+)";/g
/**
 * Has modules of Node come by `require`. An `import` of one reads all that it exports, also what it loads only when it is asked for: `node:http` then loads a whole
 * HTTP client besides (`fetch`, WebSocket), `node:crypto` the web's cryptography.
 */
function requireBuiltIns(code) {
  const required = code.replace(builtInImport, (_, names, namespace, whole, module) => {
    const found = names === undefined ? (namespace ?? whole) : `{${names.replace(/([\w$]+) as ([\w$]+)/g, '$1:$2')}}`
    return `const ${found}=require("${module}");`
  })
  const left = /\bfrom"node:[^"]*"/.exec(required)
  if (left) throw new Error(`an import of a module of Node is written in another way: ${left[0]}`)
  return required
}
// Apart, so that what only the agent's modules share is one piece of code each, and not cut along the modules of the other.
for (const entryPoints of [discovery, agent]) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.18',
    outdir: 'dist/bin',
    entryNames: '[name]',
    // These find files of their own beside them, or are loaded by name.
    external: ['@oclif/*', 'piscina'],
    write: false,
    banner: { js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)" },
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: 'warning',
  })
  mkdirSync(join(dist, 'bin'), { recursive: true })
  for (const { path, text } of outputFiles) writeFileSync(path, requireBuiltIns(text))
}
for (const name of ['pilot-discovery.js', 'pilot-agent.js', 'runtime.js']) copyFileSync(join(root, 'bin', name), join(dist, 'bin', name))
copyFileSync(join(root, 'package.json'), join(dist, 'package.json'))
