// Builds the package into dist/, and that of the agent alone into dist-agent/: the commands, and JavaScript of the sources with the wire types, a file for each thread entry and what they share.
// Bundled because a thread would look for, read and link up to three hundred modules otherwise.
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Plugin } from '@oclif/core/config'
import { build } from 'esbuild'
import { writeAgentPackage } from './agent-package.js'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
const named = (folder, names) => names.map((name) => `${folder}/${name}`)
/** Returns the modules of the commands of a binary, which the command-line library loads by name. */
const commandsIn = (folder) =>
  named(
    folder,
    readdirSync(join(root, folder), { recursive: true }).filter((name) => name.endsWith('.ts')),
  )
const isTask = (path) => path.endsWith('-task.ts')
/** The modules of the actors of a binary, and the tasks of its pools. */
const actorsIn = (folder) =>
  named(folder, readdirSync(join(root, folder), { recursive: true })).filter(
    (name) => isTask(name) || (name.endsWith('.ts') && /^export const actor\b/m.test(readFileSync(join(root, name), 'utf8'))),
  )
/** Modules that are loaded by name: the commands, and what threads and pools run. All but commands are in one folder, as they find each other. */
const actors = actorsIn('actors/discovery')
const discovery = ['bin/discovery-main.js', ...commandsIn('bin/discovery'), 'actors/runtime/thread.ts', ...actors.filter((path) => !isTask(path))]
/** Tasks, which run on threads of pools alone. */
const tasks = ['actors/http/fetch-task.ts', ...actors.filter(isTask)]
const agent = ['bin/agent-main.js', ...commandsIn('bin/agent'), ...actorsIn('actors/agent')]
/** The plugins of the command-line library: their commands, and the hook for unknown commands. */
const plugins = ['help', 'autocomplete', 'not-found'].map((name) => {
  const folder = dirname(dirname(fileURLToPath(import.meta.resolve(`@oclif/plugin-${name}`))))
  const { oclif, ...pjson } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const commands = existsSync(join(folder, 'lib/commands')) ? readdirSync(join(folder, 'lib/commands'), { recursive: true }) : []
  const modules = [
    ...named('lib/commands', commands).filter((path) => path.endsWith('.js')),
    ...(oclif.hooks?.command_not_found ? ['lib/index.js'] : []),
  ]
  return { name, folder, modules, pjson: { name: pjson.name, version: pjson.version, type: pjson.type, oclif } }
})
/** A static import of a module of Node, as the bundler writes it: of the whole, of names, of both, of a namespace. */
const builtInImport = /\bimport(?: ([\w$]+))?,?(?:\{([^}]*)\}|\*as ([\w$]+))? ?from"(node:[\w/]+)";/g
/**
 * Has modules of Node come by `require`. An `import` of one reads all that it exports, also what it loads only when it is asked for: `node:http` then loads a whole
 * HTTP client besides (`fetch`, WebSocket), `node:crypto` the web's cryptography.
 */
function requireBuiltIns(code) {
  const required = code.replace(builtInImport, (_, whole, names, namespace, module) => {
    const found = [whole, namespace, names && `{${names.replace(/([\w$]+) as ([\w$]+)/g, '$1:$2')}}`].filter(Boolean)
    return found.map((pattern) => `const ${pattern}=require("${module}");`).join('')
  })
  const left = /\bfrom"node:[^"]*"/.exec(required)
  if (left) throw new Error(`an import of a module of Node is written in another way: ${left[0]}`)
  return required
}
/** Returns where the built module of a source is, without the end of its name. */
const outputOf = (path) => (/^bin\/\w+\//.test(path) ? path.slice('bin/'.length, -'.ts'.length) : basename(path).replace(/\.[jt]s$/, ''))
const own = (paths) => paths.map((path) => ({ in: path, out: outputOf(path) }))
/** What the name of a module begins with that is made here: it has an actor and what hosts it on a thread (`actors/runtime/hosting.ts`). */
const hosted = 'hosted:'
const onThreads = actors.filter((path) => !isTask(path)).map((path) => ({ in: `${hosted}${path}`, out: `${outputOf(path)}-thread` }))
/** Makes these modules. */
const hostedActors = {
  name: 'hosted-actors',
  setup(build) {
    build.onResolve({ filter: new RegExp(`^${hosted}`) }, ({ path }) => ({ path: path.slice(hosted.length), namespace: 'hosted' }))
    build.onLoad({ filter: /./, namespace: 'hosted' }, ({ path }) => ({
      contents: `export { actor } from './${path}'\nexport { hostOnThread } from './actors/runtime/hosting.ts'`,
      resolveDir: root,
    }))
  },
}
const ofPlugins = plugins.flatMap(({ name, folder, modules }) =>
  modules.map((path) => ({ in: join(folder, path), out: `plugins/${name}/${path.slice(0, -'.js'.length)}` })),
)
/** The commit that is built, with `-dirty` where files of it are changed; undefined outside a clone, and without git. */
const revision = existsSync(join(root, '.git'))
  ? spawnSync('git', ['describe', '--always', '--dirty', '--abbrev=40', '--exclude=*'], { cwd: root, encoding: 'utf8' }).stdout?.trim() || undefined
  : undefined
// Apart, so that what only the agent's modules share is one piece of code each, and not cut along the modules of the other. What a thread runs is one file,
// without pieces that others share: a thread would look for and link a hundred of them (docs/decisions.md, "Packaging").
/** What the agent consists of, below dist/. */
const ofAgent = []
for (const { entryPoints, splitting = true, isOfAgent = false } of [
  { entryPoints: own(discovery) },
  { entryPoints: [...own(tasks), ...onThreads], splitting: false },
  { entryPoints: own(agent), isOfAgent: true },
  { entryPoints: ofPlugins, isOfAgent: true },
]) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints,
    plugins: [hostedActors],
    bundle: true,
    splitting,
    format: 'esm',
    platform: 'node',
    target: 'node22.19',
    outdir: 'dist/bin',
    // These find files of their own beside them, or are loaded by name.
    external: ['piscina', 'typescript'],
    // The command-line library looks for its version.
    define: { __dirname: 'import.meta.dirname', BUILT_REVISION: JSON.stringify(revision) ?? 'undefined' },
    write: false,
    banner: { js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)" },
    minifyWhitespace: true,
    minifySyntax: true,
    logLevel: 'warning',
  })
  for (const { path, text } of outputFiles) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, requireBuiltIns(text))
    if (isOfAgent) ofAgent.push(relative(dist, path))
  }
}
for (const name of ['pilot-discovery.js', 'pilot-agent.js', 'runtime.js']) copyFileSync(join(root, 'bin', name), join(dist, 'bin', name))
copyFileSync(join(root, 'package.json'), join(dist, 'package.json'))
// A manifest of the commands of each binary, so that only the module of the command that runs is loaded.
const { name, version, type } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
for (const binary of ['discovery', 'agent']) {
  const folder = join(dist, 'bin', binary)
  const pjson = { name, version, type, oclif: { commands: './' } }
  const plugin = new Plugin({ root: folder, isRoot: true, pjson, ignoreManifest: true, errorOnManifestCreate: true })
  await plugin.load()
  writeFileSync(join(folder, 'oclif.manifest.json'), JSON.stringify(plugin.manifest))
}
for (const { name, folder, pjson } of plugins) {
  const built = join(dist, 'bin/plugins', name)
  writeFileSync(join(built, 'package.json'), JSON.stringify(pjson))
  copyFileSync(join(folder, 'oclif.manifest.json'), join(built, 'oclif.manifest.json'))
}
writeAgentPackage(root, ofAgent)
