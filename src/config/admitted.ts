/**
 * Decides on objects that the API server asks about before it stores them (docs/operation.md, W5 and W6): by the declarations of the kinds, as
 * files and stored objects are read.
 */
import { isDeepStrictEqual } from 'node:util'
import type { ConfigObject } from '../../protocols/data.ts'
import type { AdmissionAnswer, AdmissionRequest } from '../../protocols/messages/admission.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import type { EnvoyFilterSpec } from './kinds/envoy-filter.ts'
import type { Kind } from './kinds/kind.ts'
import { type KindName, kinds } from './kinds.ts'
import type { OptOuts } from './opt-outs.ts'
import { type DocumentFault, parseConfigDocument } from './parse.ts'
import { faultsOfPatches, type PatchCheck } from './patch-faults.ts'
import type { PatternChecks } from './patterns.ts'
import { type Fault, isMapping, mapping } from './shape.ts'
import { withoutEffect } from './without-effect.ts'

/** What became of a review, a label of `galley_validation_failed` unless it is `passed`. */
export type AdmissionOutcome = 'passed' | 'unsupported_operation' | 'yaml_decode_error' | 'unknown_type' | 'invalid_resource'

/** A decision. */
export interface AdmissionVerdict {
  readonly outcome: AdmissionOutcome
  readonly answer: AdmissionAnswer
  /** The labels of metrics; undefined where the object is of no kind of the mesh. */
  readonly labels: { readonly group: string; readonly version: string; readonly resource: string } | undefined
  /** The object that is denied and why, for the log; undefined: of a dry run, which would store nothing. */
  readonly told?: string | undefined
}

/** How objects are read. */
export interface AdmissionChecks {
  readonly names: MeshNames
  readonly patterns: PatternChecks
  readonly optOuts: OptOuts
  /** Finds mistakes in the patches of EnvoyFilters. Undefined: reviews of these are decided elsewhere. */
  readonly patchFaults?: PatchCheck
}

/** The top-level fields of an object. */
const documentFields: ReadonlySet<string> = new Set(['apiVersion', 'kind', 'metadata', 'spec', 'status'])

/** Decides on a request. The answer must not be given if `patterns` are exhausted afterwards. */
export function decideAdmission(request: AdmissionRequest, checks: AdmissionChecks): AdmissionVerdict {
  const { operation, subResource, object } = request
  const kind = kindOf(request, checks.names)
  const labels = kind && { group: request.kind.group, version: request.kind.version, resource: kind.plural }
  const decided = (outcome: AdmissionOutcome, answer: AdmissionAnswer): AdmissionVerdict => ({ outcome, answer, labels })
  const denied = (outcome: AdmissionOutcome, message: string) => {
    const told = request.isDryRun
      ? undefined
      : `${request.kind.kind.slice(0, 100)} ${placeOf(request, isMapping(object) ? object : {}).slice(0, 320)}: ${message}`
    return { ...decided(outcome, { allowed: false, code: 400, message }), told }
  }
  if (operation !== 'CREATE' && operation !== 'UPDATE') return decided('unsupported_operation', { allowed: true })
  if (!kind) return denied('unknown_type', `unrecognized type ${request.kind.kind.slice(0, 100)}`)
  // A status says nothing of what is configured.
  if (subResource !== '') return decided('passed', { allowed: true })
  if (!isMapping(object)) return denied('yaml_decode_error', 'error decoding configuration: the object is no mapping')
  // What an object that is being deleted says does not count any more, and its finalizers must not be kept from being removed.
  if (isEnding(object)) return decided('passed', { allowed: true })
  const { faults, unknown, warnings } = judged(object, kind, request, checks)
  const wrong = [...faults, ...unknown]
  if (wrong.length === 0) return decided('passed', { allowed: true, warnings })
  const message = faults.length > 0 ? `configuration is invalid: ${faults.join('; ')}` : unknown.join('')
  if (!areStored(wrong, kind, request, checks)) return denied('invalid_resource', message)
  return decided('passed', { allowed: true, warnings: [`allowed, since the stored object has the same spec: ${message}`, ...warnings] })
}

/** Why an object is invalid, and what its user is told besides. */
function judged(object: Readonly<Record<string, unknown>>, { name }: Kind<KindName>, request: AdmissionRequest, checks: AdmissionChecks) {
  const { objects, faults, warnings } = read(completed(object, request), request, checks)
  const idle = objects.flatMap((each) => withoutEffect(each, checks.names.domain))
  const field = Object.keys(object).find((each) => !documentFields.has(each))
  const unknown = field === undefined ? [] : [`unknown field ${JSON.stringify(field.slice(0, 100))} on ${name} resource ${placeOf(request, object)}`]
  const { wrong, odd } = patchesOf(objects, checks.patchFaults)
  return { faults: [...faults, ...wrong].map(said), unknown, warnings: [...warnings, ...odd, ...idle].map(said) }
}

/**
 * Whether a request leaves the spec of an object and all that is wrong with it as they are stored. Objects that were stored before they were checked
 * would not get rid of their finalizers otherwise.
 */
function areStored(wrong: readonly string[], kind: Kind<KindName>, request: AdmissionRequest, checks: AdmissionChecks): boolean {
  const { operation, object, oldObject } = request
  if (operation !== 'UPDATE' || !isMapping(oldObject) || !isDeepStrictEqual(mapping(object).spec, oldObject.spec)) return false
  const { faults, unknown } = judged(oldObject, kind, request, checks)
  const before = new Set([...faults, ...unknown])
  return wrong.every((reason) => before.has(reason))
}

/** What is wrong with the patches of EnvoyFilters: mistakes, and what an Envoy may know that is not known here. */
function patchesOf(objects: readonly ConfigObject[], check: PatchCheck = () => []) {
  const faults = objects.filter(({ kind }) => kind === 'EnvoyFilter').flatMap(({ spec }) => faultsOfPatches(spec as EnvoyFilterSpec, check))
  return { wrong: faults.filter(({ level }) => level === 'error'), odd: faults.filter(({ level }) => level !== 'error') }
}

function kindOf({ kind: { group, version, kind } }: AdmissionRequest, names: MeshNames): Kind<KindName> | undefined {
  const found = kinds.get(kind)
  return found && names.canonicalGroup(group) === `${found.group}.${names.domain}` && found.versions.includes(version) ? found : undefined
}

const isEnding = ({ metadata }: Readonly<Record<string, unknown>>): boolean =>
  isMapping(metadata) && metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null

/** The object with what the server completes: its namespace, and the name that it makes. Top-level fields that are unknown are left out. */
function completed(object: Readonly<Record<string, unknown>>, { kind, namespace, name }: AdmissionRequest): Readonly<Record<string, unknown>> {
  const { metadata } = object
  const known = Object.fromEntries(Object.entries(object).filter(([field]) => documentFields.has(field)))
  if (!isMapping(metadata)) return { ...known, metadata: { name, namespace } }
  const { generateName } = metadata
  const made = typeof generateName === 'string' && generateName !== '' ? `${generateName}00000` : name
  const apiVersion = `${kind.group}/${kind.version}`
  return { ...known, apiVersion, kind: kind.kind, metadata: { ...metadata, name: metadata.name || made, namespace: metadata.namespace || namespace } }
}

function read(object: Readonly<Record<string, unknown>>, { namespace, name }: AdmissionRequest, { names, patterns, optOuts }: AdmissionChecks) {
  // An object for another control plane is valid by the same rules.
  const revision = revisionOf(object, names)
  return parseConfigDocument(`${namespace}/${name}`, object, names, { patterns, optOuts, revision, source: 'review' })
}

function revisionOf({ metadata }: Readonly<Record<string, unknown>>, names: MeshNames): string {
  if (!isMapping(metadata) || !isMapping(metadata.labels)) return ''
  const revision = names.canonicalKeys(metadata.labels as Readonly<Record<string, string>>)[`${names.domain}/rev`]
  return typeof revision === 'string' ? revision : ''
}

function placeOf({ namespace, name }: AdmissionRequest, { metadata }: Readonly<Record<string, unknown>>): string {
  const { namespace: own, name: given } = isMapping(metadata) ? metadata : {}
  return `${namespace || String(own ?? '')}/${name || String(given ?? '')}`
}

const said = ({ path, reason }: Fault | DocumentFault): string => (path === '' ? reason : `${path}: ${reason}`)
