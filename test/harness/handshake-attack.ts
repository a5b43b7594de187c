/** Clients that do nothing but TLS handshakes, on a thread of their own that limits itself to a share of a core. */
import { connect as connectTcp, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

/** What the clients do. */
export interface AttackOptions {
  readonly port: number
  /** The source addresses, which take turns. */
  readonly addresses: readonly string[]
  /** Number of connections at a time. */
  readonly together: number
  /** The client certificate; none by default. */
  readonly presented?: { readonly key: string; readonly cert: string }
  /** Whether the last bytes of each handshake are never sent, and the connection is closed instead. */
  readonly unfinished?: boolean
  /** The share of a core that the clients may use. Default: 0.5. */
  readonly share?: number
}

/** Addresses of this machine, from 127.1.0.1. */
export const attackers = (count: number, network = 1): string[] =>
  Array.from({ length: count }, (_, index) => `127.${network}.${Math.floor(index / 200)}.${(index % 200) + 1}`)

/** A running attack. */
export class HandshakeAttack {
  readonly #worker: Worker
  /** Numbers of connections that were opened, and of handshakes that the server finished. */
  opened = 0
  finished = 0

  constructor(options: AttackOptions) {
    this.#worker = new Worker(fileURLToPath(import.meta.url), { workerData: options })
    this.#worker.on('message', ({ opened, finished }) => Object.assign(this, { opened, finished }))
  }

  async stop(): Promise<void> {
    await this.#worker.terminate()
  }
}

if (!isMainThread && (workerData as Partial<AttackOptions> | undefined)?.addresses) attack(workerData as AttackOptions)

/** The time in which the second answer of a client is collected, and then the one until it closes, in milliseconds. */
const cutAfter = { collectMs: 20, closeMs: 100 }
/** Bytes at the end of a handshake that are kept back: a part of the message Finished. */
const keptBack = 30

/** Passes on the first message of a TLS client, the second without its last bytes, and then closes the connection. */
function cutShort(raw: Socket): Duplex {
  let later: Buffer | undefined
  const stream = new Duplex({
    read: () => undefined,
    write(chunk: Buffer, _encoding, done) {
      if (later) later = Buffer.concat([later, chunk])
      else raw.write(chunk)
      later ??= Buffer.alloc(0)
      done()
      if (later.length !== chunk.length) return
      setTimeout(() => {
        raw.write((later as Buffer).subarray(0, -keptBack))
        setTimeout(() => raw.destroy(), cutAfter.closeMs)
      }, cutAfter.collectMs)
    },
  })
  raw.on('data', (chunk) => stream.push(chunk))
  raw.once('close', () => stream.destroy())
  return stream
}

function attack({ port, addresses, together, presented, unfinished = false, share = 0.5 }: AttackOptions): void {
  const started = performance.now()
  let opened = 0
  let finished = 0
  let now = 0
  const isSpent = () => {
    const { user, system } = process.threadCpuUsage()
    return (user + system) / 1000 > (performance.now() - started) * share + 100
  }
  const open = () => {
    const raw: Socket = connectTcp({ host: '127.0.0.1', port, localAddress: addresses[opened++ % addresses.length] as string })
    now++
    const socket = connectTls({ socket: unfinished ? cutShort(raw) : raw, rejectUnauthorized: false, ALPNProtocols: ['h2'], ...presented })
    // With TLS 1.3 a client is done before the server has read its certificate: the server's first data is waited for.
    socket.once('data', () => {
      finished++
      socket.destroy()
    })
    for (const each of [raw, socket]) each.on('error', () => socket.destroy())
    raw.once('close', () => {
      now--
      socket.destroy()
    })
  }
  setInterval(() => {
    while (now < together && !isSpent()) open()
    parentPort?.postMessage({ opened, finished })
  }, 5)
}
