/** Parses the request descriptions in the queries of `/debug/authz` and `/debug/routing`. */
import { isIP } from 'node:net'
import type { DescribedRequest, SentRequest } from '../../../protocols/messages/described-request.ts'
import { type Parameter, proxyParameter } from './page-parameters.ts'
import { sentRequestOf } from './routing-answers.ts'

/** The parameters that describe a request. */
export const requestParameters: readonly Parameter[] = [
  { name: 'protocol', about: 'http by default', choices: ['http', 'tcp'] },
  { name: 'method', about: 'GET by default' },
  { name: 'host', about: 'host of the request' },
  { name: 'path', about: '/ by default' },
  { name: 'header', about: 'header of the request, name:value', isRepeated: true },
  { name: 'principal', about: "SPIFFE ID of the client's certificate; the request is in plain text without it" },
  { name: 'claims', about: 'claims of an accepted token, as a JSON object; there is none without it' },
  { name: 'metadata', about: 'dynamic metadata of filters, as a JSON object' },
  { name: 'sourceIp', about: 'address of the peer' },
  { name: 'remoteIp', about: 'address of the client on whose behalf the peer connects; that of the peer by default' },
  { name: 'destinationIp', about: 'address that the connection is for' },
  { name: 'port', about: 'port that the connection is for' },
  { name: 'sni', about: 'server name of the TLS connection' },
]

const names = requestParameters.map(({ name }) => name)
const known = new Set([proxyParameter.name, ...names])

/** Parses the query about a request that a workload or a client sends. Returns a string with the reason when it is invalid. */
export function readSentRequest(query: URLSearchParams): SentRequest | string {
  const rest = new URLSearchParams(query)
  rest.delete('scheme')
  const described = readDescribedRequest(rest)
  return typeof described === 'string' ? described : sentRequestOf(described, query.get('scheme') ?? '')
}

/** Parses the query. Returns a string with the reason when it is invalid. */
export function readDescribedRequest(query: URLSearchParams): DescribedRequest | string {
  const unknown = [...query.keys()].find((name) => !known.has(name))
  if (unknown !== undefined) return `unknown parameter ${JSON.stringify(unknown)}; a request is described by ${names.join(', ')}`
  const text = (name: string, fallback = '') => query.get(name) ?? fallback
  const protocol = text('protocol', 'http')
  if (protocol !== 'http' && protocol !== 'tcp') return `protocol: ${JSON.stringify(protocol)} is neither http nor tcp`
  const port = text('port', '0')
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) return `port: ${JSON.stringify(port)} is not a port`
  const headers: Record<string, string[]> = Object.create(null)
  for (const line of query.getAll('header')) {
    const colon = line.indexOf(':')
    if (colon < 1) return `header: ${JSON.stringify(line)} is not name:value`
    const name = line.slice(0, colon).trim().toLowerCase()
    headers[name] = [...(headers[name] ?? []), line.slice(colon + 1).trim()]
  }
  const claims = readObject(query.get('claims'))
  if (typeof claims === 'string') return `claims: ${claims}`
  const metadata = readObject(query.get('metadata'))
  if (typeof metadata === 'string') return `metadata: ${metadata}`
  const sourceIp = text('sourceIp')
  const fault = addressFault({ sourceIp, remoteIp: text('remoteIp'), destinationIp: text('destinationIp') })
  if (fault !== undefined) return fault
  return {
    protocol,
    method: text('method', 'GET'),
    host: text('host'),
    path: text('path', '/'),
    headers,
    sourceIp,
    remoteIp: text('remoteIp', sourceIp),
    destinationIp: text('destinationIp'),
    destinationPort: Number(port),
    sni: text('sni'),
    peer: text('principal').replace(/^spiffe:\/\//, '') || undefined,
    claims,
    metadata: metadata ?? {},
  }
}

/** Which of some parameters is no address, and not empty; undefined: none. */
export function addressFault(given: Readonly<Record<string, string>>): string | undefined {
  const [name, text = ''] = Object.entries(given).find(([, address]) => address !== '' && isIP(address) === 0) ?? []
  return name && `${name}: ${JSON.stringify(text.slice(0, 100))} is not an IP address`
}

/** Parses a JSON object. Returns a string with the reason when it is invalid. */
function readObject(given: string | null): Readonly<Record<string, unknown>> | string | undefined {
  if (given === null) return undefined
  try {
    const parsed: unknown = JSON.parse(given)
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? (parsed as Record<string, unknown>) : 'not a JSON object'
  } catch {
    return 'not JSON'
  }
}
