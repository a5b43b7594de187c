/** The usual metrics of gRPC servers (`grpc_server_*`, docs/metrics.md). */

import { codeName, status } from '../../src/model/status-codes.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { Counter, Histogram, type MetricRegistry } from '../runtime/metrics.ts'
import type { GrpcStream } from './grpc-stream.ts'
import type { Method } from './methods.ts'

/** In seconds. Streams of proxies last for hours and fall into the last bucket. */
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * Wraps the function that opens a method's streams, so that each stream is counted: started, handled by status code, messages in both
 * directions, and duration.
 */
export type Measure = (path: string, type: Method['type'], open: (stream: GrpcStream) => void) => (stream: GrpcStream) => void

/** Registers the metrics of a server and returns the wrapper. */
export function grpcMetrics(registry: MetricRegistry): Measure {
  const registers = [registry]
  const labelNames = ['grpc_type', 'grpc_service', 'grpc_method']
  const started = new Counter({ name: 'grpc_server_started_total', help: 'RPCs started on the server', labelNames, registers })
  const received = new Counter({ name: 'grpc_server_msg_received_total', help: 'messages received on the server', labelNames, registers })
  const sent = new Counter({ name: 'grpc_server_msg_sent_total', help: 'messages sent by the server', labelNames, registers })
  const handling = new Histogram({ name: 'grpc_server_handling_seconds', help: 'seconds until an RPC has ended', labelNames, buckets, registers })
  const handled = new Counter({
    name: 'grpc_server_handled_total',
    help: 'RPCs that ended, whatever their status',
    labelNames: [...labelNames, 'grpc_code'],
    registers,
  })
  return (path, type, open) => {
    const [, service = '', name = ''] = path.split('/')
    const labels = { grpc_type: type, grpc_service: service, grpc_method: name }
    const start = started.series(labels)
    const counted = { received: received.series(labels), sent: sent.series(labels) }
    return (stream: GrpcStream) => {
      const at = monotonicMs()
      start()
      open(
        observed(stream, {
          ...counted,
          ended(code) {
            handled.inc({ ...labels, grpc_code: codeName(code) })
            handling.observe(labels, (monotonicMs() - at) / 1000)
          },
        }),
      )
    }
  }
}

interface StreamEvents {
  received(): void
  sent(): void
  /** Called once, with the gRPC status. */
  ended(code: number): void
}

/** Wraps a stream and reports its events. A stream that closed without a status was cancelled by its client. */
function observed(stream: GrpcStream, events: StreamEvents): GrpcStream {
  let stoodStill: ((reason: string) => void) | undefined
  let still = false
  stream.onClose(() => events.ended(still ? status.deadlineExceeded : (stream.status ?? status.canceled)))
  stream.onStandstill((reason) => {
    still = true
    stoodStill?.(reason)
  })
  return {
    peer: stream.peer,
    headers: stream.headers,
    connection: stream.connection,
    isSecure: stream.isSecure,
    isLocal: stream.isLocal,
    ends: stream.ends,
    get certificateCaller() {
      return stream.certificateCaller
    },
    get stillMs() {
      return stream.stillMs
    },
    get outstanding() {
      return stream.outstanding
    },
    get status() {
      return stream.status
    },
    onMessage: (take) =>
      stream.onMessage((message) => {
        events.received()
        return take(message)
      }),
    onBorrowed: (listen) =>
      stream.onBorrowed((message) => {
        events.received()
        listen(message)
      }),
    onEnd: (listen) => stream.onEnd(listen),
    onStandstill(listen) {
      stoodStill = listen
    },
    onClose: (listen) => stream.onClose(listen),
    write: (parts, done) =>
      stream.write(parts, (failed) => {
        if (!failed) events.sent()
        done(failed)
      }),
    beginTrial: (bytes, passed) => stream.beginTrial(bytes, passed),
    endTrial: () => stream.endTrial(),
    end: (code, message, retryAfterMs) => stream.end(code, message, retryAfterMs),
    release: (code, message) => stream.release(code, message),
  }
}
