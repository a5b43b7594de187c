/**
 * The configuration of the connection to a cluster, on the main thread: the client library, which costs 0.6 s of CPU and 89 MB, is loaded
 * here alone, and only with a cluster. Watchers ask for what they need to connect (`clusterAccess`).
 */
import type { RequestOptions } from 'node:https'
import { isIPv6 } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import type { KubeConfig } from '@kubernetes/client-node'
import type { ClusterAccess, ClusterOrigin } from '../../../protocols/messages/orchestrator.ts'
import { isMapping, mapping } from '../../../src/config/shape.ts'
import { readPlugin } from '../../../src/orchestrator/exec-credential.ts'
import { readProxy } from '../../../src/orchestrator/proxies.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { joinedFiles, readConnection } from './connection-files.ts'
import { CredentialPlugin } from './exec-plugin.ts'

type Mapping = Readonly<Record<string, unknown>>

/** How long tokens and certificates are used before their files are read again, in milliseconds. */
const keptMs = 10_000

/** A configuration that was loaded, and the plugin of its user. */
interface Loaded {
  readonly config: KubeConfig
  readonly text: string
  readonly plugin: CredentialPlugin | undefined
}

/** The connection to a cluster. */
export class ClusterConnection {
  readonly answers: BoundedAnswers<'clusterAccess'> = { clusterAccess: (isRefused) => this.access(isRefused) }
  readonly #origin: ClusterOrigin
  /** The configuration as it was last loaded, with what its plugins keep; and its text. */
  #loaded: Loaded | undefined
  #access: { readonly access: ClusterAccess; readonly at: number } | undefined

  constructor(origin: ClusterOrigin) {
    this.#origin = origin
  }

  /**
   * Returns how the server is reached now. `isRefused`: the server has refused the last credential, so that nothing kept is used, and
   * plugins run again. Rejects with the reason, which names the file.
   */
  async access(isRefused: boolean): Promise<ClusterAccess> {
    const now = monotonicMs()
    if (!isRefused && this.#access && now - this.#access.at < keptMs) return this.#access.access
    const access = await this.#read(isRefused)
    this.#access = { access, at: now }
    return access
  }

  async #read(isRefused: boolean): Promise<ClusterAccess> {
    const origin = this.#origin
    const config = await this.#config(origin)
    const where = shownOrigin(origin)
    const cluster = config.getCurrentCluster()
    if (!cluster) throw new Error(`${where}: ${noCluster(config)}`)
    const server = URL.parse(cluster.server)
    if (server?.protocol !== 'https:')
      throw new Error(`${where}: the server ${JSON.stringify(cluster.server)} of the cluster ${cluster.name} has no https address`)
    try {
      if (cluster.proxyUrl) readProxy(cluster.proxyUrl)
    } catch (error) {
      throw new Error(`${where}: proxy-url of the cluster ${cluster.name}: ${(error as Error).message}`)
    }
    const options: RequestOptions & { readonly servername?: string } = { headers: {} }
    try {
      await config.applyToHTTPSOptions(options)
      const credential = await this.#loaded?.plugin?.credential(isRefused)
      if (credential) {
        const { token, cert, key } = credential
        if (token !== undefined) options.headers = { ...options.headers, authorization: `Bearer ${token}` }
        if (cert !== undefined) Object.assign(options, { cert, key })
      }
    } catch (error) {
      throw new Error(`${where}: the credential of the user ${config.getCurrentUser()?.name}: ${(error as Error).message.trim()}`)
    }
    const headers = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value).trim()])
    if (options.auth) headers.push(['authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`])
    return {
      ...{ server: cluster.server, proxy: cluster.proxyUrl || undefined },
      ...{ ca: pem(options.ca), cert: pem(options.cert), key: pem(options.key) },
      serverName: options.servername,
      verifies: !cluster.skipTLSVerify,
      headers: Object.fromEntries(headers),
    }
  }

  async #config(origin: ClusterOrigin): Promise<KubeConfig> {
    if (origin.from === 'pod') return ofPod(origin)
    const reading = origin.from === 'file' ? readBoundedFile(origin.path) : joinedFiles(origin)
    const text = await reading.catch((error: Error) => {
      throw new Error(origin.from === 'file' ? `--orchconfig: ${error.message}` : error.message)
    })
    return this.#load(text, origin.from === 'file' ? dirname(origin.path) : '/', shownOrigin(origin))
  }

  async #load(text: string, directory: string, where: string): Promise<KubeConfig> {
    // Only what a plugin gave is kept: the library reads a token's file as it loads the configuration.
    const known = this.#loaded?.text === text ? this.#loaded : undefined
    if (known?.plugin) return known.config
    const { KubeConfig: Config } = await import('@kubernetes/client-node')
    const config = new Config()
    try {
      const given = readConnection(text)
      config.loadFromString(loadable(given, directory))
      config.makePathsAbsolute(directory)
      this.#loaded = { config, text, plugin: await pluginOf(config, given, directory) }
    } catch (error) {
      throw new Error(`${where}: ${(error as Error).message.split('\n')[0]}`)
    }
    return config
  }
}

/** The name of what a connection is configured by, for errors. */
const shownOrigin = (origin: ClusterOrigin): string =>
  origin.from === 'pod' ? 'the cluster of this pod' : origin.from === 'file' ? `--orchconfig: ${origin.path}` : origin.paths.join(', ')

/**
 * Returns a configuration as the library is to read it. Users with a token's file (`tokenFile`) have it where the library looks for it, with
 * its whole path. Plugins are left out, since the library neither tells them of the cluster nor ends them.
 */
function loadable(config: Mapping, directory: string): string {
  const users = listOf(config.users).map((item) => {
    if (!isMapping(item) || !isMapping(item.user)) return item
    const { exec: _own, ...user } = item.user
    if (typeof user.tokenFile !== 'string') return { ...item, user }
    const { tokenFile, token: _overruled, ...others } = user
    return { ...item, user: { ...others, 'auth-provider': { name: 'tokenFile', config: { tokenFile: resolve(directory, tokenFile as string) } } } }
  })
  return JSON.stringify({ ...config, users })
}

/** Returns the plugin of the current user; undefined without one. Throws an Error with the reason when it cannot be used. */
async function pluginOf(loaded: KubeConfig, config: Mapping, directory: string): Promise<CredentialPlugin | undefined> {
  const context = mapping(named(config.contexts, loaded.getCurrentContext()).context)
  const { exec } = mapping(named(config.users, context.user).user)
  if (!isMapping(exec)) return undefined
  const plugin = readPlugin(exec)
  const cluster = mapping(named(config.clusters, context.cluster).cluster)
  const { 'certificate-authority-data': data, 'certificate-authority': file } = cluster
  const isRead = plugin.takesCluster && typeof data !== 'string' && typeof file === 'string'
  const read = isRead ? Buffer.from(await readBoundedFile(resolve(directory, file))).toString('base64') : undefined
  // A path is relative to the file; a name is looked up in the usual places.
  const command = plugin.command.includes('/') ? resolve(directory, plugin.command) : plugin.command
  return new CredentialPlugin({ ...plugin, command }, cluster, typeof data === 'string' ? data : read)
}

const named = (items: unknown, name: unknown): Mapping => mapping(listOf(items).find((item) => isMapping(item) && item.name === name))
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** Reads the files of a pod's service account. They are read each time, since the token is replaced long before it expires. */
async function ofPod({ host, port, directory }: Extract<ClusterOrigin, { from: 'pod' }>): Promise<KubeConfig> {
  const [ca, token] = await Promise.all([readBoundedFile(join(directory, 'ca.crt')), readBoundedFile(join(directory, 'token'))])
  const { KubeConfig: Config } = await import('@kubernetes/client-node')
  const config = new Config()
  const server = `https://${isIPv6(host) ? `[${host}]` : host}:${port}`
  const cluster = { name: 'pod', server, caData: Buffer.from(ca).toString('base64'), skipTLSVerify: false }
  config.loadFromClusterAndUser(cluster, { name: 'service account', token: token.trim() })
  return config
}

/** Why a configuration has no cluster. */
function noCluster(config: KubeConfig): string {
  const name = config.getCurrentContext() as string | undefined
  if (!name) return 'current-context is not set'
  const context = config.getContextObject(name)
  return context
    ? `there is no cluster ${JSON.stringify(context.cluster)}, which the context ${JSON.stringify(name)} names`
    : `there is no context ${JSON.stringify(name)}`
}

const pem = (value: RequestOptions['ca'] | RequestOptions['key']): string | undefined => (value ? value.toString() : undefined)
