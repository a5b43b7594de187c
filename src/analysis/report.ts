/** Findings as text for people, JSON for programs, and SARIF 2.1.0 (OASIS) for code hosts. */
import { readKey } from '../config/kinds.ts'
import type { DocumentFault } from '../config/parse.ts'
import { readPlace } from '../config/places.ts'
import { oneLine, printable } from '../logging/layout.ts'
import { type Code, codes, type Finding, type Level } from './finding.ts'
import type { Position } from './positions.ts'

/** A finding with where its object stands. */
export interface Located extends Omit<Finding, 'object'> {
  readonly level: Level
  /** `<Kind> <namespace>/<name>`; empty where it could not be read. */
  readonly object: string
  /** The namespace of the object, or the namespace that it is; undefined: it is in none. */
  readonly namespace?: string | undefined
  /** The file; empty for an object of a cluster. */
  readonly file: string
  /** The number of the document in the file, from 1; 0 for an object of a cluster. */
  readonly document: number
  /** The line and column of the field in the file, from 1; undefined: they are not known. */
  readonly line?: number | undefined
  readonly column?: number | undefined
}

/** Returns where a field of the object with a key is in a file. */
export type PositionOf = (file: string, document: number, key: string | undefined, path: string) => Position | undefined

/** Returns a fault or warning of reading a file as a finding. */
export function ofDocument(
  code: 'IST0106' | 'IST0133',
  { file, document, key, path, reason }: DocumentFault,
  domain: string,
  positionOf: PositionOf,
): Located {
  const [, line] = /(?:^|: )not (?:YAML|UTF-8), line (\d+)/.exec(reason) ?? []
  const position = line === undefined ? positionOf(file, document, key, path) : { line: Number(line), column: 1 }
  return {
    code,
    level: codes[code].level,
    object: key === undefined ? '' : nameOf(key, domain),
    namespace: key && namespaceOf(key, domain),
    path,
    message: reason,
    file,
    document,
    ...position,
  }
}

/** Returns a finding with its object's name and place, which is `<file>, document <n>` for one of a file. */
export function located({ code, object, path, message }: Finding, place: string, domain: string, positionOf: PositionOf): Located {
  const { file, document } = readPlace(place)
  return {
    code,
    level: codes[code].level,
    object: nameOf(object, domain),
    namespace: namespaceOf(object, domain),
    path,
    message,
    file,
    document,
    ...positionOf(file, document, object, path),
  }
}

function nameOf(key: string, domain: string): string {
  const { kind, namespace, name } = readKey(key, domain)
  return kind === 'MeshNetworks' ? 'mesh networks' : `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`
}

function namespaceOf(key: string, domain: string): string | undefined {
  const { kind, namespace, name } = readKey(key, domain)
  return kind === 'Namespace' ? name : namespace === '' ? undefined : namespace
}

/** The colours of levels on a terminal. */
const colours: Readonly<Record<Level, number>> = { error: 31, warning: 33, info: 36 }

/** Returns lines for people, one a finding, whatever files, objects and fields are called. */
export function textReport(findings: readonly Located[], isColoured: boolean): string {
  return findings.map((finding) => lineOf(finding, isColoured)).join('\n')
}

function lineOf({ code, level, object, path, message, file, line, column }: Located, isColoured: boolean): string {
  const shown = isColoured ? `\x1b[${colours[level]}m${level}\x1b[0m` : level
  const where = [line === undefined ? file : `${file}:${line}:${column}`, object, path].filter(Boolean).join(': ')
  return `${shown} ${oneLine(`${[code, where].filter(Boolean).join(' ')}: ${message}`)}`
}

const json = (value: unknown): string => printable(JSON.stringify(value, undefined, 2))

/** Returns the findings as JSON, each with the name of its code. */
export function jsonReport(findings: readonly Located[]): string {
  return json(findings.map((finding) => ({ ...finding, name: codes[finding.code].name })))
}

/** The path of a file as a reference of RFC 3986, which SARIF demands: relative where the path is, else with the scheme `file`. */
const uriOf = (file: string): string => {
  const path = file.toWellFormed().split('/').map(encodeURIComponent).join('/')
  return path.startsWith('/') ? `file://${path}` : path
}

/** The levels of SARIF. */
const sarifLevels: Readonly<Record<Level, string>> = { error: 'error', warning: 'warning', info: 'note' }

/** Returns the findings as SARIF. */
export function sarifReport(findings: readonly Located[], version: string): string {
  const used = [...new Set(findings.map(({ code }) => code))].sort()
  const rules = used.map((id: Code) => ({
    id,
    name: codes[id].name,
    shortDescription: { text: codes[id].meaning },
    help: { text: codes[id].advice },
    defaultConfiguration: { level: sarifLevels[codes[id].level] },
  }))
  const results = findings.map(({ code, level, object, path, message, file, line, column }) => ({
    ruleId: code,
    ruleIndex: used.indexOf(code),
    level: sarifLevels[level],
    message: { text: [object, path, message].filter(Boolean).join(': ') },
    locations: [
      {
        ...(file === ''
          ? {}
          : {
              physicalLocation: {
                artifactLocation: { uri: uriOf(file) },
                ...(line === undefined ? {} : { region: { startLine: line, startColumn: column } }),
              },
            }),
        logicalLocations: [{ fullyQualifiedName: [object, path].filter(Boolean).join('.') }],
      },
    ],
  }))
  const driver = { name: 'pilot-discovery', version, rules }
  return json({
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits', results }],
  })
}
