/**
 * Sidecars that connect to the secured port as a proxy does, each from an address of its own, and stay connected: a process of its own that
 * reports which changes have arrived where, and how many streams ended. The changes are services whose names begin with `mark-`, numbered in
 * the order in which they are written. Driven by bench/attacked-mesh.ts.
 */
import { connect } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { DeltaDiscoveryRequestSchema } from '../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { scanFields } from '../src/xds/slab/wire.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../src/xds/stream/frames.ts'
import { clusterType, listenerType } from '../src/xds/type-urls.ts'
import type { Shown } from './clients.ts'
import { connectFrom } from './loopback.ts'

/** What a process of sidecars does: connects one for each of the credentials, all in the namespace. */
export interface WatchedOptions {
  readonly port: number
  readonly namespace: string
  readonly shown: readonly Shown[]
}

/** Messages to the driver. Times are Unix milliseconds. */
export type WatchedReport =
  /** All sidecars have their clusters and listeners. */
  | { readonly type: 'connected' }
  /** A sidecar has received the changes up to this number. */
  | { readonly type: 'arrived'; readonly sidecar: number; readonly mark: number; readonly at: number }
  /** A stream ended before the server closed it gracefully. */
  | { readonly type: 'dropped'; readonly sidecar: number; readonly reason: string }

const reconnectMs = 200
const buffers = new FrameBuffers()
const marks = /mark-(\d+)\./g
const options = JSON.parse(process.argv[2] as string) as WatchedOptions
const report = (message: WatchedReport): void => void process.send?.(message)
const waiting = new Set(options.shown.keys())

function request(typeUrl: string, responseNonce: string, node?: object): Buffer {
  return messageFrame(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { typeUrl, responseNonce, node: node as never })))
}

/** Connects a sidecar, and again whenever its stream ends. */
function run(sidecar: number, { cert, key, token }: Shown): void {
  const credentials = cert === undefined || key === undefined ? {} : { cert, key }
  const socket = connectFrom(`127.1.${sidecar >> 8}.${(sidecar & 255) + 1}`, options.port, credentials)
  const session = connect('https://localhost', { createConnection: () => socket })
  const stream = session.request({
    ':method': 'POST',
    ':path': '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
    'content-type': 'application/grpc',
    te: 'trailers',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  })
  const got = new Set<string>()
  let isOver = false
  const over = (reason: string | undefined): void => {
    if (isOver) return
    isOver = true
    session.destroy()
    if (reason !== undefined) report({ type: 'dropped', sidecar, reason })
    setTimeout(() => run(sidecar, options.shown[sidecar] as Shown), reconnectMs)
  }
  const reader = new FrameReader(1 << 28, buffers)
  stream.on('data', (bytes: Buffer) =>
    reader.take(bytes, (message) => {
      const { typeUrl, nonce } = headOf(message)
      stream.write(request(typeUrl, nonce))
      got.add(typeUrl)
      if (got.size === 2 && waiting.delete(sidecar) && waiting.size === 0) report({ type: 'connected' })
      const numbers = [...message.toString('latin1').matchAll(marks)].map(([, number]) => Number(number))
      if (numbers.length > 0) report({ type: 'arrived', sidecar, mark: Math.max(...numbers), at: Date.now() })
    }),
  )
  let status: unknown
  stream.on('trailers', (headers) => (status = headers['grpc-status']))
  stream.on('end', () => over(status === '0' ? undefined : `ended with status ${status}`))
  stream.on('error', (error) => over(error.message))
  stream.on('close', () => over('closed'))
  session.on('error', (error) => over(error.message))
  const name = `pod-${sidecar}`
  const node = {
    id: `sidecar~10.100.${sidecar >> 8}.${sidecar & 255}~${name}.${options.namespace}~${options.namespace}.svc.cluster.local`,
    metadata: { NAMESPACE: options.namespace, SERVICE_ACCOUNT: options.namespace, LABELS: { app: name } },
    userAgentName: 'envoy',
    userAgentVersionType: { case: 'userAgentBuildVersion', value: { version: { majorNumber: 1, minorNumber: 40 } } },
  }
  stream.write(request(clusterType, '', node))
  stream.write(request(listenerType, ''))
}

/** Returns type and nonce of a delta response. */
function headOf(message: Buffer): { typeUrl: string; nonce: string } {
  let [typeUrl, nonce] = ['', '']
  for (const { field, bytes } of scanFields(message)) {
    if (field === 4 && bytes) typeUrl = bytes.toString()
    if (field === 5 && bytes) nonce = bytes.toString()
  }
  return { typeUrl, nonce }
}

process.on('disconnect', () => process.exit(0))
for (const [sidecar, shown] of options.shown.entries()) run(sidecar, shown)
