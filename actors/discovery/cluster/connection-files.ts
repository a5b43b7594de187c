/** Joins files with contexts, clusters and users to one configuration, as the orchestrator's command line does (docs/analysis.md, Y6). */
import { existsSync } from 'node:fs'
import { delimiter, dirname, join, resolve } from 'node:path'
import type { ClusterOrigin } from '../../../protocols/messages/orchestrator.ts'
import { isMapping, mapping } from '../../../src/config/shape.ts'
import { readDocuments } from '../../../src/config/yaml-documents.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The lists of a configuration, with the field that their items have beside their names. */
const lists = { clusters: 'cluster', users: 'user', contexts: 'context' } as const

/** The fields of clusters and users that are paths. */
const paths: Readonly<Record<string, readonly string[]>> = {
  clusters: ['certificate-authority'],
  users: ['client-certificate', 'client-key', 'tokenFile'],
  contexts: [],
}

/**
 * Returns the files that a user connects with: the one that is named, those of `KUBECONFIG` that exist, or the one in the home directory;
 * undefined: there is none. `named`: a path, or empty.
 */
export function connectionFiles(named: string, environment: NodeJS.ProcessEnv, home: string): readonly string[] | undefined {
  if (named !== '') return [named]
  const given = (environment.KUBECONFIG ?? '').split(delimiter).filter(Boolean)
  const candidates = given.length > 0 ? given : home === '' ? [] : [join(home, '.kube', 'config')]
  const existing = candidates.filter((path) => existsSync(path))
  return existing.length > 0 ? existing : undefined
}

/**
 * Reads files and returns what they configure together, as JSON with whole paths: of entries of the same name the first counts.
 * `context`: the context that is used; empty: the first current one. Rejects with an Error that names the file.
 */
export async function joinedFiles({ paths: files, context }: Extract<ClusterOrigin, { from: 'files' }>): Promise<string> {
  const joined: Record<keyof typeof lists, Map<unknown, unknown>> = { clusters: new Map(), users: new Map(), contexts: new Map() }
  let current = context
  for (const file of files) {
    const config = configIn(await readBoundedFile(file), file)
    const { 'current-context': own } = config
    if (current === '' && typeof own === 'string') current = own
    for (const list of Object.keys(lists) as (keyof typeof lists)[])
      for (const item of Array.isArray(config[list]) ? (config[list] as unknown[]) : [])
        if (isMapping(item) && !joined[list].has(item.name)) joined[list].set(item.name, wholePaths(list, item, dirname(file)))
  }
  if (context !== '' && !joined.contexts.has(context))
    throw new Error(`there is no context ${JSON.stringify(context)}; there are ${[...joined.contexts.keys()].join(', ') || 'none'}`)
  const all = Object.fromEntries(Object.entries(joined).map(([list, items]) => [list, [...items.values()]]))
  return JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': current, ...all })
}

/** Returns the names of the contexts of files. Rejects with an Error that names the file. */
export async function contextNames(paths: readonly string[]): Promise<string[]> {
  const { contexts } = JSON.parse(await joinedFiles({ from: 'files', paths, context: '' })) as { contexts: Mapping[] }
  return contexts.map(({ name }) => String(name))
}

/** The namespace of the context that is used; undefined: it names none. Rejects with an Error that names the file. */
export async function contextNamespace(origin: Extract<ClusterOrigin, { from: 'files' }>): Promise<string | undefined> {
  const { contexts, 'current-context': current } = JSON.parse(await joinedFiles(origin)) as { contexts: Mapping[]; 'current-context': string }
  const { namespace } = mapping(contexts.find(({ name }) => name === current)?.context)
  return typeof namespace === 'string' ? namespace : undefined
}

function configIn(text: string, file: string): Mapping {
  try {
    return readConnection(text)
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`)
  }
}

/**
 * Reads a configuration as the orchestrator's clients do: the first document counts. Throws an Error with the reason, which quotes nothing of
 * the text, since that has credentials.
 */
export function readConnection(text: string): Mapping {
  const [document] = readDocuments(text)
  if (document && 'error' in document) throw new Error(document.error)
  if (!isMapping(document?.value)) throw new Error('there is no configuration in it')
  return document.value
}

/** Relative paths are relative to the file. A command without a slash is looked up in the usual places. */
function wholePaths(list: keyof typeof lists, item: Mapping, directory: string): Mapping {
  const field = lists[list]
  const value: Record<string, unknown> = { ...mapping(item[field]) }
  for (const name of paths[list] ?? []) if (typeof value[name] === 'string' && value[name] !== '') value[name] = resolve(directory, value[name])
  const exec = value.exec
  if (isMapping(exec) && typeof exec.command === 'string' && exec.command.includes('/'))
    value.exec = { ...exec, command: resolve(directory, exec.command) }
  return { ...item, [field]: value }
}
