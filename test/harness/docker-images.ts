/** The images of the Dockerfile, as trees of files that a test cluster runs pods from: no image can be built where there is no internet. */
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildCommands } from '../commands.js'
import type { TestCluster } from './cluster.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A stage of the Dockerfile, with what it has of the stages that it is based on. */
export interface DockerStage {
  /** What is copied from the context of the build, by path in the image. */
  readonly files: Readonly<Record<string, string>>
  /** What is copied from another image, by path in the image: `envoy /usr/local/bin/envoy`. */
  readonly fromImages: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  readonly user: string
  readonly workingDir: string
  readonly entry: readonly string[]
  readonly args: readonly string[]
  /** The number of instructions that make layers. */
  readonly layers: number
}

const empty: DockerStage = { files: {}, fromImages: {}, env: {}, user: '', workingDir: '', entry: [], args: [], layers: 0 }

/** Reads a Dockerfile. Returns its stages by name; throws an Error at an instruction that this does not know. */
export function dockerStages(text: string): Map<string, DockerStage> {
  const stages = new Map<string, DockerStage>()
  let name = ''
  for (const line of text.split('\n')) {
    const [instruction = '', ...words] = line.trim().split(/\s+/)
    if (instruction === '' || instruction.startsWith('#') || instruction === 'ARG') continue
    if (instruction === 'FROM') {
      const [base = '', , own = ''] = words
      stages.set((name = own), stages.get(base) ?? empty)
      continue
    }
    stages.set(name, withInstruction(stages.get(name) ?? empty, instruction, words))
  }
  return stages
}

function withInstruction(stage: DockerStage, instruction: string, words: readonly string[]): DockerStage {
  const [first = '', second = '', third = ''] = words
  const layers = stage.layers + 1
  switch (instruction) {
    case 'COPY': {
      const image = /^--from=(.+)$/.exec(first)?.[1]
      if (image === undefined) return { ...stage, layers, files: { ...stage.files, [second]: first } }
      return { ...stage, layers, fromImages: { ...stage.fromImages, [third]: `${image} ${second}` } }
    }
    case 'ENV': {
      const [, name = '', value = ''] = /^(\w+)=(.*)$/.exec(first) ?? []
      return { ...stage, env: { ...stage.env, [name]: value } }
    }
    case 'RUN':
      return { ...stage, layers }
    case 'USER':
      return { ...stage, user: first }
    case 'WORKDIR':
      return { ...stage, workingDir: first }
    case 'ENTRYPOINT':
      return { ...stage, entry: JSON.parse(words.join(' ')) as string[], args: [] }
    case 'CMD':
      return { ...stage, args: JSON.parse(words.join(' ')) as string[] }
    default:
      throw new Error(`the instruction ${instruction} of the Dockerfile is not known here`)
  }
}

/** The stages of the Dockerfile of this project. */
export const ownStages = (): Map<string, DockerStage> => dockerStages(readFileSync(join(root, 'Dockerfile'), 'utf8'))

/**
 * Gives a cluster the images `mesh/pilot-discovery` and `mesh/pilot-agent`, as charts name them: the files that the Dockerfile copies, and of its base
 * images Node and Envoy. All else of the base images is that of this machine.
 */
export function dockerImages(cluster: TestCluster, envoy: string): void {
  // The built commands are laid out as the folder of the build is.
  const built = dirname(process.env.TEST_COMMANDS ?? buildCommands())
  const inBase: Record<string, string> = { 'envoy /usr/local/bin/envoy': envoy }
  for (const [image, target] of [
    ['mesh/pilot-discovery', 'discovery'],
    ['mesh/pilot-agent', 'agent'],
  ] as const) {
    const stage = ownStages().get(target) ?? empty
    const tree = join(cluster.dir, 'images', target)
    const files: Record<string, string> = { '/usr/local/bin/node': process.execPath }
    for (const [path, source] of Object.entries(stage.files)) {
      mkdirSync(dirname(join(tree, path)), { recursive: true })
      cpSync(join(source.startsWith('node_modules/') ? root : built, source), join(tree, path), { recursive: true })
    }
    // One mount for each folder of the root of the image.
    for (const path of Object.keys(stage.files)) {
      const top = path.split('/').slice(0, 3).join('/')
      files[top] = join(tree, top)
    }
    for (const [path, source] of Object.entries(stage.fromImages)) files[path] = inBase[source] ?? ''
    cluster.imageOf(image, {
      // The runtime looks for the program itself among the files of this machine.
      argv: ['/usr/bin/env', ...stage.entry],
      args: stage.args,
      env: stage.env,
      workingDir: stage.workingDir,
      user: Number(stage.user.split(':')[0]),
      files,
    })
  }
}
