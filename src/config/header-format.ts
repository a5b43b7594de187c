/**
 * Values of headers that proxies set, with Envoy's command operators (`%NAME(argument):length%`; Envoy, "Custom request/response headers").
 * Envoy refuses a whole route configuration for one value that it cannot parse, so values are checked here by the rules of the oldest
 * supported release, 1.36.
 */

/** Operators without an argument that do not exist in two forms, for downstream and upstream. */
const ofRequests =
  'ACCESS_LOG_TYPE BYTES_RECEIVED BYTES_RETRANSMITTED BYTES_SENT CONNECTION_ID CONNECTION_TERMINATION_DETAILS CUSTOM_FLAGS DURATION FILTER_CHAIN_NAME ' +
  'GRPC_STATUS_NUMBER HOSTNAME PROTOCOL REQUESTED_SERVER_NAME REQUEST_DURATION REQUEST_HEADERS_BYTES REQUEST_TX_DURATION RESPONSE_CODE RESPONSE_DURATION ' +
  'RESPONSE_FLAGS RESPONSE_FLAGS_LONG RESPONSE_HEADERS_BYTES RESPONSE_TRAILERS_BYTES RESPONSE_TX_DURATION ROUNDTRIP_DURATION ROUTE_NAME STREAM_ID ' +
  'TLS_JA3_FINGERPRINT TLS_JA4_FINGERPRINT TRACE_ID UNIQUE_ID VIRTUAL_CLUSTER_NAME DOWNSTREAM_DIRECT_LOCAL_ADDRESS ' +
  'DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT DOWNSTREAM_DIRECT_LOCAL_PORT DOWNSTREAM_DIRECT_REMOTE_ADDRESS DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT ' +
  'DOWNSTREAM_DIRECT_REMOTE_PORT DOWNSTREAM_HANDSHAKE_DURATION DOWNSTREAM_LOCAL_EMAIL_SAN DOWNSTREAM_LOCAL_OTHERNAME_SAN DOWNSTREAM_LOCAL_SUBJECT ' +
  'DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_1 DOWNSTREAM_PEER_CHAIN_FINGERPRINTS_256 DOWNSTREAM_PEER_CHAIN_SERIALS DOWNSTREAM_PEER_EMAIL_SAN ' +
  'DOWNSTREAM_PEER_FINGERPRINT_1 DOWNSTREAM_PEER_FINGERPRINT_256 DOWNSTREAM_PEER_OTHERNAME_SAN DOWNSTREAM_PEER_SERIAL UPSTREAM_CLUSTER ' +
  'UPSTREAM_CLUSTER_RAW UPSTREAM_CONNECTION_ID UPSTREAM_CONNECTION_POOL_READY_DURATION UPSTREAM_HOST UPSTREAM_HOST_NAME UPSTREAM_HOST_NAME_WITHOUT_PORT ' +
  'UPSTREAM_PROTOCOL UPSTREAM_REQUEST_ATTEMPT_COUNT'

/** Operators without an argument that exist as `DOWNSTREAM_...` and `UPSTREAM_...`. */
const ofBothSides =
  'DECOMPRESSED_HEADER_BYTES_RECEIVED DECOMPRESSED_HEADER_BYTES_SENT HEADER_BYTES_RECEIVED HEADER_BYTES_SENT LOCAL_ADDRESS LOCAL_ADDRESS_WITHOUT_PORT ' +
  'LOCAL_DNS_SAN LOCAL_IP_SAN LOCAL_PORT LOCAL_URI_SAN PEER_CERT PEER_DNS_SAN PEER_IP_SAN PEER_ISSUER PEER_SUBJECT PEER_URI_SAN REMOTE_ADDRESS ' +
  'REMOTE_ADDRESS_WITHOUT_PORT REMOTE_PORT TLS_CIPHER TLS_SESSION_ID TLS_VERSION TRANSPORT_FAILURE_REASON WIRE_BYTES_RECEIVED WIRE_BYTES_SENT'

/** Names of the operators of Envoy 1.36 without an argument. */
export const plainOperators: ReadonlySet<string> = new Set([
  ...ofRequests.split(' '),
  ...ofBothSides.split(' ').flatMap((name) => [`DOWNSTREAM_${name}`, `UPSTREAM_${name}`]),
])

/** The syntax of an operator's argument, and whether it accepts a length. */
interface Operator {
  readonly argument: RegExp
  readonly length: boolean
}

const header: Operator = { argument: /^(?=.)(:?[\w!#$&'*+.^`|~-]+)?(\?(:?[\w!#$&'*+.^`|~-]+)?)?$/, length: true }
const time: Operator = { argument: /^/, length: false }
const filterState: Operator = { argument: /^[^:]+(:(PLAIN|TYPED|FIELD:[^:]+))?$/, length: true }
const metadata: Operator = { argument: /./, length: false }
const named: Operator = { argument: /./, length: true }

/** Operators with an argument. The argument is optional when its pattern matches empty text. */
const withArgument: ReadonlyMap<string, Operator> = new Map(
  Object.entries({
    REQ: header,
    RESP: header,
    TRAILER: header,
    PATH: { argument: /^(WQ|NQ)?(:(ORIG|PATH|ORIG_OR_PATH))?$/, length: true },
    START_TIME: time,
    START_TIME_LOCAL: time,
    EMIT_TIME: time,
    EMIT_TIME_LOCAL: time,
    DOWNSTREAM_PEER_CERT_V_START: time,
    DOWNSTREAM_PEER_CERT_V_END: time,
    UPSTREAM_PEER_CERT_V_START: time,
    UPSTREAM_PEER_CERT_V_END: time,
    FILTER_STATE: filterState,
    UPSTREAM_FILTER_STATE: filterState,
    DYNAMIC_METADATA: metadata,
    CLUSTER_METADATA: metadata,
    UPSTREAM_METADATA: metadata,
    PER_REQUEST_STATE: metadata,
    METADATA: { argument: /^(DYNAMIC|CLUSTER|UPSTREAM_HOST|LISTENER|VIRTUAL_HOST|ROUTE)(:|$)/, length: true },
    COMMON_DURATION: { argument: /^[^:]+:[^:]+:(ms|us|ns)$/, length: false },
    ENVIRONMENT: named,
    QUERY_PARAM: named,
    GRPC_STATUS: { argument: /^(CAMEL_STRING|SNAKE_STRING|NUMBER)?$/, length: false },
    RESPONSE_CODE_DETAILS: { argument: /^/, length: false },
  }),
)

/** An operator at the beginning of a text. */
const operator = /^%([A-Z0-9_]+)(?:\((.*?)\))?(?::(\d{1,9}))?%/

/** Returns why text is not a valid header value for proxies to set. Undefined when it is valid. `%%` is a literal percent sign. */
export function headerFormatFault(value: string): string | undefined {
  if (Buffer.byteLength(value) > 16_384) return 'longer than 16384 bytes'
  if (controls.test(value)) return 'has a control character'
  for (let at = value.indexOf('%'); at >= 0; ) {
    if (value[at + 1] === '%') {
      at = value.indexOf('%', at + 2)
      continue
    }
    const found = operator.exec(value.slice(at))
    if (!found) return `has a % that begins no command such as %REQ(x-name)% (a percent sign is written %%)`
    const [whole, name = '', argument, length] = found
    const reason = operatorFault(name, argument, length)
    if (reason !== undefined) return `%${name.slice(0, 60)}%: ${reason}`
    at = value.indexOf('%', at + whole.length)
  }
  return undefined
}

/** Characters that a header value must not contain (RFC 9110, section 5.5). */
const controls = /[\u0000-\u0008\u000a-\u001f\u007f]/

function operatorFault(name: string, argument: string | undefined, length: string | undefined): string | undefined {
  if (plainOperators.has(name)) return argument === undefined && length === undefined ? undefined : 'takes neither an argument nor a length'
  const known = withArgument.get(name)
  if (!known) return 'proxies have no such command'
  if (!known.argument.test(argument ?? '')) return argument ? `${JSON.stringify(argument.slice(0, 100))} is no argument of it` : 'needs an argument'
  return length !== undefined && !known.length ? 'takes no length' : undefined
}
