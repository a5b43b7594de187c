/** `pilot-discovery diff`: what files would change for the connected proxies. */
import { type JsonValue, toJson } from '@bufbuild/protobuf'
import { ValueSchema } from '@bufbuild/protobuf/wkt'
import {
  type ChangedProxies,
  type Fault,
  type GivenFault,
  type PreviewChangesResponse,
  PreviewChangesResponseSchema,
  type PreviewedField,
  type PreviewedResource,
} from '../../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { previewBounds } from '../../../protocols/messages/admin-call.ts'
import { AdminClient } from '../../../src/cli/admin-client.ts'
import { troubleStatus } from '../../../src/cli/exit-status.ts'
import { printAnswer } from '../../../src/cli/folding.ts'
import { isColoured, printJson } from '../../../src/cli/print.ts'
import { type Cell, coloured, sizeText, table } from '../../../src/cli/table.ts'
import { oneLine } from '../../../src/logging/layout.ts'
import { count } from '../../../src/model/counts.ts'
import { nameOfNode } from '../../../src/model/proxy.ts'
import { shortType } from '../../../src/xds/type-urls.ts'
import { givenFiles } from '../analysis/configuration-files.ts'
import { type ServerFlags, serverOf, warnOfSilent } from './asked-server.ts'
import { objectText } from './object-rows.ts'

/** The maximum size of an answer in bytes. */
const largestAnswer = 64 * 1_048_576
/** What is named at most: proxies of a set, and characters of a value. */
const most = { names: 5, value: 100 }

/** Prints the differences. The exit status is 1 when there are some, and 2 when a document cannot be used. */
export async function diff(flags: ServerFlags & { readonly replace: boolean; readonly namespace: string }, paths: readonly string[]): Promise<void> {
  const files = await filesOf(paths)
  const client = new AdminClient(await serverOf(flags), { limitMs: previewBounds.timeLimit + 5000, readMaxBytes: largestAnswer })
  const answer = await client.asked(client.rpcs.previewChanges({ files, replace: flags.replace, namespace: flags.namespace }))
  if (flags.json) printJson({ differs: differs(answer), ...(toJson(PreviewChangesResponseSchema, answer, { alwaysEmitImplicit: true }) as object) })
  else printed(answer)
  if (answer.faults.some(({ level }) => level === 'error')) process.exitCode = troubleStatus
  else if (differs(answer)) process.exitCode = 1
}

const differs = ({ changed, otherProxies }: PreviewChangesResponse): boolean => changed.length > 0 || otherProxies > 0

/** Reads the files. Rejects with an Error when one cannot be read, there is none, or they are too large. */
async function filesOf(paths: readonly string[]): Promise<{ name: string; text: string }[]> {
  const unknown = paths.find((path) => path.startsWith('-') && path !== '-')
  if (unknown !== undefined) throw new Error(`unknown flag: ${unknown}`)
  const files: { name: string; text: string }[] = []
  let bytes = 0
  for await (const given of givenFiles(paths, process.stdin)) {
    if ('isIgnored' in given) continue
    if ('fault' in given) throw new Error(oneLine(`${given.file}: ${given.fault}`))
    files.push({ name: given.file, text: given.text })
    bytes += Buffer.byteLength(given.text)
  }
  // The request has the names too.
  const largest = previewBounds.requestBytes * 0.9
  if (bytes > largest) throw new Error(`${paths.join(', ')}: ${sizeText(bytes)} are too much for one dry run (at most ${sizeText(largest)})`)
  if (files.length === 0) throw new Error(`no configuration was found: ${paths.join(', ')} has no file whose name ends in .yaml, .yml or .json`)
  return files
}

function printed(answer: PreviewChangesResponse): void {
  const { stderr } = process
  warnOfSilent(answer.replicas)
  for (const fault of answer.faults) stderr.write(`${faultText(fault)}\n`)
  for (const set of answer.changed) printAnswer(`${setText(set)}\n`)
  for (const fault of answer.newFaults) printAnswer(newFaultText(fault))
  const lines = objectLines(answer)
  if (lines.length > 0) printAnswer(lines.join('\n'))
  printAnswer(summary(answer))
}

function faultText({ level, file, document, object, path, reason }: GivenFault): string {
  const what = [object ? objectText(object) : '', path].filter((part) => part !== '').join(', ')
  const title = coloured(level === 'error' ? 'Error' : 'Warning', level === 'error' ? 'bad' : 'warning', isColoured())
  return `${title}: ${oneLine(`${file}, document ${document}${what === '' ? '' : `: ${what}`}: ${reason}`)}`
}

const newFaultText = ({ resource, reason, consequence, objects, isLoss }: Fault): string => {
  const made = objects.length === 0 ? '' : ` (made from ${objects.slice(0, most.names).map(objectText).join(', ')})`
  return coloured(oneLine(`${isLoss ? 'Loss' : 'New fault'}: ${resource}: ${reason}; ${consequence}${made}`), 'bad', isColoured())
}

function setText({ nodeIds, proxies, resources, otherResources }: ChangedProxies): string {
  const names = nodeIds.slice(0, most.names).map((id) => oneLine(nameOfNode(id)))
  const more = proxies > names.length ? `, and ${proxies - names.length} more` : ''
  const rows = resources.flatMap((resource) => rowsOf(resource))
  const others = otherResources === 0 ? '' : `\nand ${count(otherResources, 'more resource')}`
  return `${count(proxies, 'proxy', 'proxies')}: ${names.join(', ')}${more}\n${table(['TYPE', 'RESOURCE', 'CHANGE', 'DIFFERENCE'], rows, isColoured())}${others}`
}

const meanings = { added: 'good', changed: 'warning', removed: 'bad' } as const

function rowsOf({ typeUrl, name, change, fields, otherFields }: PreviewedResource): Cell[][] {
  const cell: Cell = { text: change.toUpperCase(), means: meanings[change as keyof typeof meanings] ?? 'warning' }
  const unknown = change === 'changed' ? 'the fields are not compared: it is large, or has a type that is not known here' : '-'
  const lines = [...fields.map(fieldText), ...(otherFields > 0 ? [`and ${count(otherFields, 'more field')}`] : [])]
  const [first = unknown, ...rest] = lines
  return [[shortType(typeUrl), name, cell, first], ...rest.map((line) => ['', '', '', line])]
}

const fieldText = ({ field, before, now }: PreviewedField): string => {
  const [old, own] = [before && toJson(ValueSchema, before), now && toJson(ValueSchema, now)]
  if (old === undefined) return `${field}: + ${shown(own)}`
  return own === undefined ? `${field}: - ${shown(old)}` : `${field}: ${shown(old)} → ${shown(own)}`
}

function shown(value: JsonValue | undefined): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value ?? null)
  return text.length > most.value ? `${text.slice(0, most.value)}…` : text
}

function objectLines({ objects, otherObjects, foreign }: PreviewChangesResponse): string[] {
  const kinds = Object.entries(foreign).map(([kind, number]) => `${number} ${kind}`)
  return [
    ...objects.flatMap(({ object, change }) => (object ? `${change}: ${objectText(object)}` : [])),
    ...(otherObjects > 0 ? [`and ${count(otherObjects, 'more object')}`] : []),
    ...(kinds.length > 0 ? [`not compared: ${oneLine(kinds.join(', '))}`] : []),
  ]
}

function summary({ objects, otherObjects, sameObjects, changed, otherProxies, unchangedProxies, leftProxies }: PreviewChangesResponse): string {
  const differing = changed.reduce((sum, { proxies }) => sum + proxies, otherProxies)
  const what = `${count(objects.length + otherObjects, 'object')} would differ, ${sameObjects} as they are`
  const left = leftProxies === 0 ? '' : `; ${count(leftProxies, 'proxy was', 'proxies were')} not looked at`
  return `${what}; ${count(differing, 'proxy', 'proxies')} would see a difference, ${unchangedProxies} none${left}`
}
