/** Injects the documents of a text: what `pilot-discovery inject` prints (docs/injection.md, N14). */

import { stringify } from 'yaml'
import { isMapping } from '../config/shape.ts'
import { documentLimits, readDocumentTexts } from '../config/yaml-documents.ts'
import { oneLine } from '../logging/layout.ts'
import { givenIn, meshKey, writtenKey } from './annotations.ts'
import { type InjectionSettings, injectPod } from './inject-pod.ts'
import { labelRemarks } from './labels.ts'
import type { Owner } from './owner.ts'
import { InjectionError } from './pod.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The path of the pod template in a document of a kind that has one. */
const templates: Readonly<Record<string, readonly string[]>> = {
  CronJob: ['spec', 'jobTemplate', 'spec', 'template'],
  DaemonSet: ['spec', 'template'],
  Deployment: ['spec', 'template'],
  DeploymentConfig: ['spec', 'template'],
  Job: ['spec', 'template'],
  Pod: [],
  ReplicaSet: ['spec', 'template'],
  ReplicationController: ['spec', 'template'],
  StatefulSet: ['spec', 'template'],
}
/** How a document is written: every text is quoted that a reader of YAML 1.1, such as the orchestrator's command line, takes for something else. */
const form = { lineWidth: 0, aliasDuplicateObjects: false, compat: 'yaml-1.1' } as const
const groups: ReadonlySet<string> = new Set(['', 'apps', 'batch', 'extensions', 'apps.openshift.io'])

/** What was printed, and what a user should know of it. */
export interface InjectedDocuments {
  readonly text: string
  readonly notices: readonly string[]
}

/**
 * Injects all documents of a text, and those of lists in it. Documents without pods are returned as they were written; with `asList` all are the items
 * of one List in JSON. Throws an Error that names the document and the reason.
 */
export function injectDocuments(content: string, namespace: string, settings: InjectionSettings, asList = false): InjectedDocuments {
  const notices: string[] = []
  const isJson = /^\s*\{/.test(content)
  const items: unknown[] = []
  const written = readDocumentTexts(content).map((document, index) => {
    const place = `document ${index + 1}`
    if ('error' in document) throw new Error(`${place}: ${document.error}`)
    const injected = injectValue(document.value, { namespace, settings, notices, place })
    if (asList) {
      if (!isMapping(injected)) return ''
      const inexact = inexactAt(injected)
      if (inexact !== undefined) throw new Error(`${place}: ${inexact}`)
      items.push(injected)
      return ''
    }
    if (injected === document.value) return document.text
    return isJson ? `${JSON.stringify(injected, null, 2)}\n` : stringify(injected, form)
  })
  if (asList) return { text: `${JSON.stringify({ apiVersion: 'v1', kind: 'List', items }, null, 2)}\n`, notices }
  return { text: written.map((text) => `${text.replace(/^(\uFEFF?---[ \t]*\r?\n)/, '').replace(/\n*$/, '')}\n`).join('---\n'), notices }
}

interface Injecting {
  readonly namespace: string
  readonly settings: InjectionSettings
  readonly notices: string[]
  readonly place: string
  readonly depth?: number
}

/** Returns a document with its pods injected; the same value when nothing changes. */
function injectValue(value: unknown, injecting: Injecting): unknown {
  const { depth = 0 } = injecting
  if (!isMapping(value) || typeof value.kind !== 'string' || depth > documentLimits.depth) return value
  if (value.kind.endsWith('List') && Array.isArray(value.items)) {
    const items = value.items.map((item, index) =>
      injectValue(item, { ...injecting, place: `${injecting.place}, item ${index + 1}`, depth: depth + 1 }),
    )
    return items.every((item, index) => item === (value.items as unknown[])[index]) ? value : { ...value, items }
  }
  const path = templates[value.kind]
  const group = String(value.apiVersion ?? '').includes('/') ? String(value.apiVersion).split('/')[0] : ''
  if (path === undefined || !groups.has(group ?? '')) return value
  return injectAt(value, path, injecting)
}

function injectAt(document: Mapping, path: readonly string[], { namespace, settings, notices, place }: Injecting): unknown {
  const metadata = isMapping(document.metadata) ? document.metadata : {}
  const given = (field: string) => (typeof metadata[field] === 'string' ? String(metadata[field]) : '')
  const name = given('name') || given('generateName').replace(/-$/, '')
  const where = given('namespace') || namespace
  const about = oneLine(`${place} (${String(document.kind)} ${where}/${name})`)
  const pod = path.reduce<unknown>((value, field) => (isMapping(value) ? value[field] : undefined), document)
  if (!isMapping(pod)) throw new Error(`${about}: has no ${path.join('.')}`)
  const labels = isMapping(pod.metadata) && isMapping(pod.metadata.labels) ? pod.metadata.labels : {}
  const written = Object.fromEntries(Object.entries(labels).map(([label, text]) => [label, String(text)]))
  for (const remark of labelRemarks('Pod', written, settings.names)) notices.push(`${about}: label ${remark.key}: ${remark.reason}`)
  // The label has an effect by the selectors of webhooks alone, which are not asked here.
  const key = meshKey(settings.names, 'sidecar', 'inject')
  if (givenIn(labels as Readonly<Record<string, string>>, key, settings.names) === 'false') {
    notices.push(
      `${about} gets no sidecar: its label ${writtenKey(labels as Readonly<Record<string, string>>, key, settings.names)} is "false", so that no webhook is asked about it`,
    )
    return document
  }
  const owner: Owner = { apiVersion: String(document.apiVersion ?? 'v1'), kind: String(document.kind), name }
  try {
    const isPod = path.length === 0
    const inexact = inexactAt(document)
    if (inexact !== undefined) throw new InjectionError(inexact)
    const injection = injectPod({ pod, namespace: where, ...(isPod ? {} : { owner }) }, settings)
    if ('skipped' in injection) {
      notices.push(`${about} gets no sidecar: ${injection.skipped}`)
      return document
    }
    for (const remark of injection.remarks.pod) notices.push(`${about}: ${remark}`)
    // A template is the same for all pods.
    for (const remark of injection.remarks.templates) if (!notices.includes(remark)) notices.push(remark)
    return replaced(document, path, injection.pod)
  } catch (error) {
    if (error instanceof InjectionError) throw new Error(`${about}: ${error.message}`)
    throw error
  }
}

function replaced(document: Mapping, path: readonly string[], value: unknown): unknown {
  const [field, ...rest] = path
  if (field === undefined) return value
  return { ...document, [field]: replaced(document[field] as Mapping, rest, value) }
}

/** Says which whole number of a document is too large to be written as it was read; undefined: none is. */
function inexactAt(document: Mapping): string | undefined {
  const left: { readonly value: unknown; readonly path: string }[] = [{ value: document, path: '' }]
  for (let each = left.pop(); each; each = left.pop()) {
    const { value, path } = each
    if (Number.isInteger(value) && !Number.isSafeInteger(value))
      return `${path.slice(1)}: whole numbers beyond 2^53 are not kept as they are; this one would be ${value}`
    if (typeof value === 'object' && value !== null)
      for (const [key, item] of Object.entries(value)) left.push({ value: item, path: `${path}.${key.slice(0, 100)}` })
  }
  return undefined
}
