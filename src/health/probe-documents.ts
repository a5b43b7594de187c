/**
 * Parses and validates the application's probes and metrics target from the environment (docs/agent.md, H6 and H7). The documents come from
 * the creator of the container.
 */
import type { ApplicationProbe, MetricsTarget } from '../../protocols/messages/status.ts'
import { integer, isMapping, list, type Report, record, reject, required, type Shape, text } from '../config/shape.ts'

/** The maximum size of a document in characters, and the maximum number of probes in it. */
const limits = { characters: 1_048_576, probes: 1000 }

const port = required(integer(1, 65_535))

/** The path of a request. Characters that must be escaped in a request (spaces, for example) are escaped later. */
const path = text({ max: 8192, pattern: /^[^\u0000-\u001f\u007f]*$/, what: 'a path', examples: ['/ok?deep=1'] })

/** A header (RFC 9110, 5). */
const header = record({
  name: required(text({ max: 256, pattern: /^(:authority|[!#$%&'*+.^_`|~\w-]+)$/, what: 'the name of a header', examples: ['x-probe', 'Host'] })),
  value: text({ max: 8192, pattern: /^[\t\u0020-\u007e\u0080-\u00ff]*$/, what: 'the value of a header', examples: ['yes'] }),
})

const applicationProbe: Shape<ApplicationProbe> = record(
  {
    httpGet: record({
      port,
      path,
      scheme: text({ pattern: /^(https?)?$/i, what: 'HTTP or HTTPS', examples: ['HTTP', 'HTTPS'] }),
      host: text(),
      httpHeaders: list(header, { max: 100 }),
    }),
    tcpSocket: record({ port, host: text() }),
    grpc: record({ port, service: text({ max: 1024 }) }),
    timeoutSeconds: integer(0, 2_147_483),
  },
  (probe, at, report) => {
    const given = [probe.httpGet, probe.tcpSocket, probe.grpc].filter((way) => way !== undefined).length
    if (given !== 1) reject(report, at, 'needs exactly one of httpGet, tcpSocket and grpc')
  },
)

const probePath = /^\/app-health\/[^/]+\/(livez|readyz|startupz)$/

const target = record({ scrape: text(), path, port: integer(1, 65_535) })

/**
 * Parses `MESH_ORCH_APP_PROBERS`, a JSON mapping from paths to probes; an empty text has none. Throws an Error that names path, field and
 * reason.
 */
export function readApplicationProbes(document: string): Record<string, ApplicationProbe> {
  if (document === '') return {}
  const report: Report = { faults: [], warnings: [] }
  const mapping = readMapping(document)
  const entries = Object.entries(mapping)
  if (entries.length > limits.probes) throw new Error(`has ${entries.length} probes, and at most ${limits.probes} are taken`)
  const probes: Record<string, ApplicationProbe> = {}
  for (const [key, value] of entries) {
    const at = key.slice(0, 200).toWellFormed()
    if (!probePath.test(key)) throw new Error(`${JSON.stringify(at)} is not /app-health/<container>/livez, readyz or startupz`)
    const probe = applicationProbe.read(value, at, report)
    if (probe) probes[key] = probe
  }
  refuseFaults(report)
  return probes
}

/**
 * Parses `MESH_METRICS_ANNOTATIONS`, JSON with `path` (default `/metrics`) and `port` (default 80) as texts; `scrape` is ignored. An empty
 * text has no target. Throws an Error that names field and reason, also when the port is that of the status server itself.
 */
export function readMetricsTarget(document: string, statusPort: number): MetricsTarget | undefined {
  if (document === '') return undefined
  const report: Report = { faults: [], warnings: [] }
  const given = Object.entries(readMapping(document)).filter(([, value]) => value !== '')
  const { path: at = '/metrics', port: number = 80 } = target.read(Object.fromEntries(given), '', report) ?? {}
  refuseFaults(report)
  if (number === statusPort) throw new Error(`port: ${number} is the port of the status server, which would ask itself`)
  return { port: number, path: at }
}

function readMapping(document: string): Record<string, unknown> {
  if (document.length > limits.characters) throw new Error(`has more than ${limits.characters} characters`)
  let value: unknown
  try {
    value = JSON.parse(document)
  } catch (error) {
    throw new Error(`is not JSON: ${(error as Error).message.slice(0, 200)}`)
  }
  if (!isMapping(value)) throw new Error('is not a mapping')
  return value
}

function refuseFaults({ faults }: Report): void {
  if (faults.length > 0)
    throw new Error(
      faults
        .map(({ path: at, reason }) => `${at === '' ? '' : `${at}: `}${reason}`)
        .join('; ')
        .slice(0, 1000),
    )
}
