/** Writes Envoy's bootstrap file, or uses the user's file in its place (docs/agent.md, B11 and B17). */
import { lookup } from 'node:dns/promises'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { makeBootstrap } from '../../../src/bootstrap/bootstrap.ts'
import { envoyArguments } from '../../../src/bootstrap/command-line.ts'
import { bootstrapSettings, type PreparedSettings } from '../../../src/bootstrap/prepared.ts'
import { splitAddress } from '../../../src/bootstrap/proxy-config.ts'
import type { BootstrapSettings } from '../../../src/bootstrap/settings.ts'
import { tagVariables } from '../../../src/bootstrap/tag-variables.ts'
import { tracerFault } from '../../../src/bootstrap/tracer.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { readIfThere } from '../../runtime/bounded-file.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after } from '../../runtime/timers.ts'
import { trustedDirectory } from '../../runtime/trusted-directory.ts'

/** The command line of Envoy, and variables for its environment. */
export interface WrittenBootstrap {
  readonly binary: string
  readonly args: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  /** Removes the bootstrap file after Envoy has exited. A user's file is not removed. */
  remove(): Promise<void>
}

/** Writes the bootstrap and returns Envoy's command line. Rejects with an Error that says why the bootstrap cannot be made or written. */
export async function writeBootstrap(prepared: PreparedSettings, log: ScopedLogger): Promise<WrittenBootstrap> {
  const { options, features, config, node } = prepared
  const file = config.customConfigFile || (await writeConfig(prepared, log))
  const args = envoyArguments(file, config, node, {
    logLevel: options.proxyLogLevel,
    componentLogLevel: options.proxyComponentLogLevel,
    logAsJson: options.logAsJson,
    override: await readOverride(features.MESH_BOOTSTRAP_OVERRIDE, log),
  })
  return {
    binary: config.binaryPath,
    args,
    variables: tagVariables(node, meshNames(features.MESH_DOMAIN)),
    remove: async () => (config.customConfigFile ? undefined : rm(file, { force: true })),
  }
}

async function writeConfig(prepared: PreparedSettings, log: ScopedLogger): Promise<string> {
  const { features, config } = prepared
  const template = features.MESH_BOOTSTRAP || config.proxyBootstrapTemplatePath
  const settings = await foundSettings(prepared, log)
  const content = template ? await rendered(template, settings, prepared) : made(settings, log)
  const file = join(config.configPath, `envoy-rev0.${template && /\.yaml(\.tmpl)?$/.test(template) ? 'yaml' : 'json'}`)
  await trustedDirectory(config.configPath, { allowVolumes: features.ORCHESTRATOR_SERVICE_HOST !== '' })
  replaceFile(file, content)
  return file
}

function made(settings: BootstrapSettings, log: ScopedLogger): string {
  const fault = tracerFault(settings.config)
  if (fault) log.error(fault)
  return `${JSON.stringify(makeBootstrap(settings), undefined, 2)}\n`
}

async function rendered(template: string, settings: BootstrapSettings, prepared: PreparedSettings): Promise<string> {
  const { fromTemplate } = await import('./user-template.ts')
  return fromTemplate(template, settings, prepared)
}

async function foundSettings(prepared: PreparedSettings, log: ScopedLogger): Promise<BootstrapSettings> {
  const { roots, pair } = prepared.discovery.credentials
  return bootstrapSettings(prepared, {
    roots: await firstThere(roots.files ?? []),
    hasPair: pair !== undefined && (await isThere(pair.chain)) && (await isThere(pair.key)),
    statsd: await resolveStatsd(prepared.config.statsdUdpAddress, log),
  })
}

const isThere = async (path: string): Promise<boolean> => (await readIfThere(path)) !== undefined

async function firstThere(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if (await isThere(path)) return path
  return undefined
}

/** The maximum size of one command-line argument on Linux, in bytes with the terminating NUL (`MAX_ARG_STRLEN`). */
const longestArgument = 131_072

async function readOverride(path: string, log: ScopedLogger): Promise<string | undefined> {
  if (path === '') return undefined
  try {
    const content = await readIfThere(path)
    if (content === undefined) throw new Error(`${path}: there is no such file`)
    if (Buffer.byteLength(content) >= longestArgument) throw new Error(`${path}: has ${longestArgument} bytes or more, which no command line takes`)
    return content
  } catch (error) {
    log.warn(`environment variable MESH_BOOTSTRAP_OVERRIDE: ${(error as Error).message}; the bootstrap is not overridden`)
  }
  return undefined
}

/** The timeout of a DNS lookup, in milliseconds. */
const resolveMs = 15_000

/**
 * Resolves the address of the statsd collector, because Envoy accepts only IP addresses there. Logs a warning and returns undefined when
 * the name cannot be resolved.
 */
async function resolveStatsd(address: string | undefined, log: ScopedLogger): Promise<BootstrapSettings['statsd']> {
  const parts = address ? splitAddress(address) : undefined
  if (!parts) return undefined
  const late = Promise.withResolvers<never>()
  const timer = after(resolveMs, () => late.reject(new Error(`no answer within ${resolveMs / 1000} s`)))
  try {
    const found = await Promise.race([lookup(parts.host, { order: 'ipv4first' }), late.promise])
    return { host: found.address, port: parts.port }
  } catch (error) {
    log.warn(
      `proxy configuration: field statsdUdpAddress: ${JSON.stringify(parts.host)} cannot be resolved: ${(error as Error).message}; statistics are not sent there`,
    )
    return undefined
  } finally {
    timer.cancel()
  }
}
