/** What a plugin that gives credentials (`exec` of a user in a configuration file) is told, and what it answers (docs/operation.md, C1). */
import { mapping } from '../config/shape.ts'

type Mapping = Readonly<Record<string, unknown>>

/** A plugin. */
export interface ExecPlugin {
  readonly apiVersion: string
  readonly command: string
  readonly args: readonly string[]
  /** Variables in addition to those of the process. */
  readonly env: Readonly<Record<string, string>>
  /** Whether it is told of the cluster. */
  readonly takesCluster: boolean
  /** What a user is to do when it is not installed; empty without one. */
  readonly hint: string
}

/** The answer of a plugin. */
export interface ExecCredential {
  readonly token: string | undefined
  readonly cert: string | undefined
  readonly key: string | undefined
  /** When it expires, in milliseconds since 1970; Infinity: it does not say. */
  readonly expiresAt: number
}

const versions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
/** The extension of a cluster that is meant for plugins. */
const extensionName = 'client.authentication.k8s.io/exec'

/** Reads the `exec` of a user. Throws an Error with field and reason. */
export function readPlugin(value: Mapping): ExecPlugin {
  const { apiVersion, command, interactiveMode } = value
  if (typeof apiVersion !== 'string' || !versions.includes(apiVersion)) throw new Error(`exec.apiVersion: expected ${versions.join(' or ')}`)
  if (typeof command !== 'string' || command === '') throw new Error('exec.command: a command is required')
  if (interactiveMode === 'Always') throw new Error('exec.interactiveMode: Always needs a terminal, which this service has not')
  const env = list(value.env).flatMap((item): [string, string][] => {
    const { name, value: given } = mapping(item)
    return typeof name === 'string' && typeof given === 'string' ? [[name, given]] : []
  })
  return {
    ...{ apiVersion, command },
    args: list(value.args).map(String),
    env: Object.fromEntries(env),
    takesCluster: value.provideClusterInfo === true,
    hint: typeof value.installHint === 'string' ? value.installHint.trim() : '',
  }
}

/** Returns the value of `KUBERNETES_EXEC_INFO`. `cluster`: the cluster as the file has it; `caData`: its authorities in base64. */
export function execInfo({ apiVersion, takesCluster }: ExecPlugin, cluster: Mapping, caData: string | undefined): string {
  const fields = ['server', 'tls-server-name', 'insecure-skip-tls-verify', 'proxy-url', 'disable-compression'] as const
  const given = Object.fromEntries(fields.flatMap((field) => (cluster[field] === undefined ? [] : [[field, cluster[field]]])))
  const config = list(cluster.extensions)
    .map(mapping)
    .find(({ name }) => name === extensionName)?.extension
  const told = { ...given, ...(caData === undefined ? {} : { 'certificate-authority-data': caData }), config: config ?? null }
  return JSON.stringify({ kind: 'ExecCredential', apiVersion, spec: { interactive: false, ...(takesCluster ? { cluster: told } : {}) } })
}

/** Reads what a plugin wrote. Throws an Error with the reason, without a part of it. */
export function readCredential(text: string, apiVersion: string): ExecCredential {
  const value = parsed(text)
  if (value.kind !== 'ExecCredential' || value.apiVersion !== apiVersion) throw new Error(`what it wrote is no ExecCredential of ${apiVersion}`)
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = mapping(value.status)
  const hasToken = isText(token)
  const hasPair = isText(cert) && isText(key)
  if (!hasToken && !hasPair) throw new Error('its status has neither a token nor a certificate with its key')
  const expiresAt = isText(expirationTimestamp) ? Date.parse(expirationTimestamp) : Number.POSITIVE_INFINITY
  return {
    token: hasToken ? token : undefined,
    ...{ cert: hasPair ? cert : undefined, key: hasPair ? key : undefined },
    // Without a date that can be read it is used once.
    expiresAt: Number.isNaN(expiresAt) ? 0 : expiresAt,
  }
}

function parsed(text: string): Mapping {
  try {
    return mapping(JSON.parse(text))
  } catch {
    throw new Error('what it wrote is no JSON')
  }
}

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
