/**
 * Reads how another cluster is reached from the text in a remote secret (docs/operation.md, J2): a configuration as `kubectl` has it, of which the
 * current context counts. Whoever may write the Secret must not run programs or read files here, and the server must prove who it is.
 */
import type { ClusterAccess } from '../../protocols/messages/orchestrator.ts'
import { type Fault, isMapping, mapping } from '../config/shape.ts'
import { readDocuments } from '../config/yaml-documents.ts'
import { readProxy } from './proxies.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The longest text that is read, in characters: those of clusters have a few thousand. */
export const longestRemoteConfig = 65_536

/** Why a field is refused, by its name. */
const refused: Readonly<Record<'cluster' | 'user', Readonly<Record<string, string>>>> = {
  cluster: {
    'certificate-authority': 'files are not read; give certificate-authority-data',
  },
  user: {
    exec: 'programs are not run; give a token or a client certificate',
    'auth-provider': 'auth providers are not used; give a token or a client certificate',
    tokenFile: 'files are not read; give token',
    'client-certificate': 'files are not read; give client-certificate-data',
    'client-key': 'files are not read; give client-key-data',
    as: 'requests in the name of others are not made',
    'as-uid': 'requests in the name of others are not made',
    'as-groups': 'requests in the name of others are not made',
    'as-user-extra': 'requests in the name of others are not made',
  },
}

const allowed: Readonly<Record<'cluster' | 'user', ReadonlySet<string>>> = {
  cluster: new Set([
    ...['server', 'certificate-authority-data', 'tls-server-name', 'proxy-url', 'insecure-skip-tls-verify', 'disable-compression', 'extensions'],
  ]),
  user: new Set(['token', 'client-certificate-data', 'client-key-data', 'username', 'password', 'extensions']),
}

/** A text that cannot be used: the field, and why. Never has anything of the text but names of fields. */
class Unusable extends Error {
  readonly path: string

  constructor(path: string, reason: string) {
    super(reason)
    this.path = path
  }
}

/** Reads a text. Never throws. */
export function readRemoteAccess(text: string): { readonly access: ClusterAccess } | { readonly fault: Fault } {
  try {
    return { access: accessIn(text) }
  } catch (error) {
    if (error instanceof Unusable) return { fault: { path: error.path, reason: error.message } }
    // An unexpected error may have some of the text in its message.
    return { fault: { path: '', reason: 'it cannot be read' } }
  }
}

function accessIn(text: string): ClusterAccess {
  if (text.length > longestRemoteConfig) throw new Unusable('', `it is longer than ${longestRemoteConfig} characters`)
  const config = mappingIn(text)
  const current = config['current-context']
  if (typeof current !== 'string' || current === '') throw new Unusable('current-context', 'expected the name of a context')
  const context = namedIn(config, 'contexts', 'context', current, 'current-context')
  const cluster = namedIn(config, 'clusters', 'cluster', context.value.cluster, `${context.path}.cluster`)
  const user = namedIn(config, 'users', 'user', context.value.user, `${context.path}.user`)
  checkFields('cluster', cluster)
  checkFields('user', user)
  return { ...serverOf(cluster.path, cluster.value), ...credentialOf(user.path, user.value) }
}

function mappingIn(text: string): Mapping {
  const [document, another] = readDocuments(text)
  if (!document) throw new Unusable('', 'it is empty')
  if (another) throw new Unusable('', 'expected one YAML document, and it has several')
  if ('error' in document) throw new Unusable('', `it is ${toldMistake(document.error)}`)
  if (!isMapping(document.value)) throw new Unusable('', 'expected a mapping in YAML')
  return document.value
}

/** The reasons of {@link readDocuments} that are told. Others may have some of the text in them, and so have keys that are given twice. */
const toldReason =
  /^(?:a control character|a key is given twice|more than \d+ aliases|an alias (?:without an anchor before it|within what it stands for)|aliases and merge keys that stand for more than \d+ values)$/

/** What is told of a mistake in the text. */
function toldMistake(error: string): string {
  const [, line, reason = ''] = /^(not YAML, line \d+): (.*)$/s.exec(error) ?? []
  if (line === undefined) return error.startsWith('nested deeper than ') ? error : 'not YAML'
  const told = reason.endsWith(' is given twice') ? 'a key is given twice' : reason
  return toldReason.test(told) ? `${line}: ${told}` : line
}

interface Part {
  readonly path: string
  readonly value: Mapping
}

/** Finds what a list has under a name: `clusters: [{name: ..., cluster: {...}}]`. */
function namedIn(config: Mapping, list: string, field: string, name: unknown, from: string): Part {
  if (typeof name !== 'string' || name === '') throw new Unusable(from, 'expected a name')
  const items = Array.isArray(config[list]) ? (config[list] as readonly unknown[]) : []
  const at = items.findIndex((item) => isMapping(item) && item.name === name)
  if (at < 0) throw new Unusable(from, `there is none of this name in ${list}`)
  return { path: `${list}[${at}].${field}`, value: mapping(mapping(items[at])[field]) }
}

function checkFields(kind: 'cluster' | 'user', { path, value }: Part): void {
  for (const [name, given] of Object.entries(value)) {
    if (given === undefined || given === null || given === '') continue
    const why = Object.hasOwn(refused[kind], name) ? refused[kind][name] : undefined
    if (why !== undefined) throw new Unusable(`${path}.${name}`, why)
    if (!allowed[kind].has(name)) throw new Unusable(`${path}.${name.slice(0, 100)}`, 'it is not known')
  }
}

type Server = Pick<ClusterAccess, 'server' | 'proxy' | 'ca' | 'serverName' | 'verifies'>

function serverOf(path: string, cluster: Mapping): Server {
  const server = textIn(path, cluster, 'server') ?? ''
  const url = URL.parse(server)
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new Unusable(`${path}.server`, 'expected the https address of an API server')
  const unverified = cluster['insecure-skip-tls-verify'] ?? false
  if (typeof unverified !== 'boolean') throw new Unusable(`${path}.insecure-skip-tls-verify`, 'expected false or true, not in quotes')
  if (unverified) throw new Unusable(`${path}.insecure-skip-tls-verify`, 'a server that does not prove who it is would have the credential')
  const proxy = textIn(path, cluster, 'proxy-url')
  try {
    if (proxy !== undefined) readProxy(proxy)
  } catch {
    throw new Unusable(`${path}.proxy-url`, 'expected an http, https or socks5 address with host and port')
  }
  const ca = pemIn(path, cluster, 'certificate-authority-data', 'CERTIFICATE')
  return { server, proxy, ca, serverName: textIn(path, cluster, 'tls-server-name'), verifies: true }
}

type Credential = Pick<ClusterAccess, 'cert' | 'key' | 'headers'>

function credentialOf(path: string, user: Mapping): Credential {
  const token = textIn(path, user, 'token')?.trim()
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) throw new Unusable(`${path}.token`, 'expected printable characters without spaces')
  const [name, password] = [textIn(path, user, 'username'), textIn(path, user, 'password')]
  const cert = pemIn(path, user, 'client-certificate-data', 'CERTIFICATE')
  const key = pemIn(path, user, 'client-key-data', 'PRIVATE KEY')
  if ((cert === undefined) !== (key === undefined))
    throw new Unusable(
      `${path}.${cert === undefined ? 'client-certificate-data' : 'client-key-data'}`,
      'a certificate needs its key, and a key its certificate',
    )
  if (token === undefined && cert === undefined && name === undefined)
    throw new Unusable(path, 'there is no credential: expected token, or client-certificate-data and client-key-data')
  const basic = name === undefined ? undefined : `Basic ${Buffer.from(`${name}:${password ?? ''}`).toString('base64')}`
  const authorization = token === undefined ? basic : `Bearer ${token}`
  return { cert, key, headers: authorization === undefined ? {} : { authorization } }
}

/** The text of a field; undefined where it is missing or empty. */
function textIn(path: string, from: Mapping, name: string): string | undefined {
  const value = from[name]
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value !== 'string') throw new Unusable(`${path}.${name}`, 'expected text')
  return value
}

function pemIn(path: string, from: Mapping, name: string, label: string): string | undefined {
  const text = textIn(path, from, name)
  if (text === undefined) return undefined
  const pem = /^[A-Za-z0-9+/=\s]*$/.test(text) ? Buffer.from(text, 'base64').toString('latin1') : ''
  if (!new RegExp(`-----BEGIN ([A-Z]+ )?${label}-----`).test(pem))
    throw new Unusable(`${path}.${name}`, `expected the base64 form of a PEM block ${label}`)
  return pem
}
