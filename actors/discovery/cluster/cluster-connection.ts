/**
 * The configuration of the connection to a cluster, on the main thread: the client library, which costs 0.6 s of CPU and 89 MB, is loaded
 * here alone, and only with a cluster. Watchers ask for what they need to connect (`clusterAccess`).
 */
import type { RequestOptions } from 'node:https'
import { isIPv6 } from 'node:net'
import { dirname, join, resolve } from 'node:path'
import type { KubeConfig } from '@kubernetes/client-node'
import { parse } from 'yaml'
import type { ClusterAccess, ClusterOrigin } from '../../../protocols/messages/orchestrator.ts'
import { isMapping } from '../../../src/config/shape.ts'
import type { BoundedAnswers } from '../../runtime/actor.ts'
import { readBoundedFile } from '../../runtime/bounded-file.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** How long tokens and certificates are used before their files are read again, in milliseconds. */
const keptMs = 10_000

/** The connection to a cluster. */
export class ClusterConnection {
  readonly answers: BoundedAnswers<'clusterAccess'> = { clusterAccess: (isRefused) => this.access(isRefused) }
  readonly #origin: ClusterOrigin
  /** The configuration as it was last loaded, with what its plugins keep; and its text. */
  #loaded: { readonly config: KubeConfig; readonly text: string } | undefined
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
    const config = this.#origin.from === 'file' ? await this.#fromFile(this.#origin.path, isRefused) : await ofPod(this.#origin)
    const where = this.#origin.from === 'file' ? `--orchconfig: ${this.#origin.path}` : 'the cluster of this pod'
    const cluster = config.getCurrentCluster()
    if (!cluster) throw new Error(`${where}: ${noCluster(config)}`)
    const server = URL.parse(cluster.server)
    if (server?.protocol !== 'https:')
      throw new Error(`${where}: the server ${JSON.stringify(cluster.server)} of the cluster ${cluster.name} has no https address`)
    if (cluster.proxyUrl) throw new Error(`${where}: proxy-url of the cluster ${cluster.name}: connections through a proxy are not supported`)
    const options: RequestOptions & { readonly servername?: string } = { headers: {} }
    try {
      await config.applyToHTTPSOptions(options)
    } catch (error) {
      throw new Error(`${where}: the credential of the user ${config.getCurrentUser()?.name}: ${(error as Error).message.trim()}`)
    }
    const headers = Object.entries(options.headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value).trim()])
    if (options.auth) headers.push(['authorization', `Basic ${Buffer.from(options.auth).toString('base64')}`])
    return {
      server: cluster.server,
      ...{ ca: pem(options.ca), cert: pem(options.cert), key: pem(options.key) },
      serverName: options.servername,
      verifies: !cluster.skipTLSVerify,
      headers: Object.fromEntries(headers),
    }
  }

  async #fromFile(path: string, isRefused: boolean): Promise<KubeConfig> {
    const text = await readBoundedFile(path).catch((error: Error) => {
      throw new Error(`--orchconfig: ${error.message}`)
    })
    // Only what a plugin gave is kept: the library reads a token's file as it loads the configuration.
    if (!isRefused && this.#loaded?.text === text && this.#loaded.config.getCurrentUser()?.exec) return this.#loaded.config
    const { KubeConfig: Config } = await import('@kubernetes/client-node')
    const config = new Config()
    try {
      config.loadFromString(withTokenFiles(text, dirname(path)))
    } catch (error) {
      throw new Error(`--orchconfig: ${path}: ${(error as Error).message.split('\n')[0]}`)
    }
    config.makePathsAbsolute(dirname(path))
    this.#loaded = { config, text }
    return config
  }
}

/**
 * Returns a configuration in which users with a token's file (`tokenFile`) have it where the library looks for it, with its whole path. Throws
 * an Error when the text is no configuration.
 */
function withTokenFiles(text: string, directory: string): string {
  const config: unknown = parse(text)
  if (!isMapping(config)) throw new Error('there is no configuration in it')
  const users = (Array.isArray(config.users) ? config.users : []).map((item: unknown) => {
    if (!isMapping(item) || !isMapping(item.user) || typeof item.user.tokenFile !== 'string') return item
    const { tokenFile, token: _overruled, ...user } = item.user
    return { ...item, user: { ...user, 'auth-provider': { name: 'tokenFile', config: { tokenFile: resolve(directory, tokenFile as string) } } } }
  })
  return JSON.stringify({ ...config, users })
}

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
