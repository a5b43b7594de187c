// Builds the package into dist/: JavaScript of the sources, the wire types, and package.json.
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const dist = join(root, 'dist')
rmSync(dist, { recursive: true, force: true })
const compiler = createRequire(import.meta.url).resolve('typescript/package.json')
const result = spawnSync(process.execPath, [join(dirname(compiler), 'bin/tsc'), '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' })
if (result.status !== 0) process.exit(result.status ?? 1)
cpSync(join(root, 'protocols/gen'), join(dist, 'protocols/gen'), { recursive: true, filter: (path) => !/\.d\.ts$|\.stamp$/.test(path) })
copyFileSync(join(root, 'package.json'), join(dist, 'package.json'))
