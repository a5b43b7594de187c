/** Forwards a port of a pod to this process, through the API server, with the rights of a user. No port of this machine is opened. */
import { Duplex, PassThrough } from 'node:stream'
import type { ClusterAccess } from '../../../protocols/messages/orchestrator.ts'
import { openApiSocket } from './api-socket.ts'

/** The connection to a forwarded port. */
export interface ForwardedPort {
  readonly stream: Duplex
  /** Sets whether the connection keeps the process alive. */
  hold(isHeld: boolean): void
  close(): void
}

/** The port of a pod. */
export interface PodPort {
  readonly namespace: string
  readonly pod: string
  readonly port: number
}

/** Connects to a port of a pod. Rejects with the reason of the API server or of the node when it cannot. */
export async function forwardPort(access: ClusterAccess, { namespace, pod, port }: PodPort): Promise<ForwardedPort> {
  const { KubeConfig, PortForward } = await import('@kubernetes/client-node')
  const socket = await openApiSocket(access, 'http/1.1')
  const config = new KubeConfig()
  config.loadFromClusterAndUser({ name: 'cluster', server: access.server, skipTLSVerify: false }, { name: 'user' })
  // The library has the address only: the connection is open, and has been checked.
  config.applyToHTTPSOptions = async (options) => void Object.assign(options, { headers: access.headers, createConnection: () => socket })

  const [received, sent, told] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const stream = Duplex.from({ readable: received, writable: sent })
  // An end before anybody reads is no error of the process.
  stream.on('error', () => undefined)
  let reason = ''
  told.on('data', (bytes: Buffer) => {
    reason += bytes.toString('utf8')
    if (bytes.length > 0) stream.destroy(lost(reason.trim()))
  })
  try {
    const forwarded = await new PortForward(config).portForward(namespace, pod, [port], received, told, sent)
    if ('onclose' in forwarded) forwarded.onclose = () => stream.destroy(lost(reason.trim() || 'the API server ended the connection'))
  } catch (error) {
    socket.destroy()
    throw new Error((error as { readonly message?: string }).message ?? String(error))
  }
  return {
    stream,
    hold: (isHeld) => void (isHeld ? socket.ref() : socket.unref()),
    close() {
      stream.destroy()
      socket.destroy()
    },
  }
}

/** The error of a connection that ends, which has a code as those of the system have. */
const lost = (reason: string): Error => Object.assign(new Error(reason), { code: 'ECONNRESET' })
