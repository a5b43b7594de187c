/**
 * One attack over the network, in a process of its own that goes on until it is ended: `attackers.ts <name> <targets as JSON>`. Each attack
 * connects from addresses of its own in the loopback network, which no well-behaved client has.
 */
import { randomBytes } from 'node:crypto'
import { createSocket } from 'node:dgram'
import { createServer as createHttp } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { connect as connectTcp, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { costlyChain, costlyShapes } from './costly-chain.ts'
import { type ClientCertificate, connectFrom } from './loopback.ts'

/** The ports that are attacked, and those of servers that the attacker provides. All are on the loopback network. */
export interface Targets {
  readonly secure: number
  readonly http: number
  readonly agent: number
  readonly dns: number
  /** The port where the attacker serves key sets. */
  readonly keySets: number
  /** The port of the application behind the agent's probes, which the attacker serves. */
  readonly application: number
  /** A token of the mesh's own issuer, whose claims the forged tokens have. */
  readonly token: string
}

const targets = JSON.parse(process.argv[3] as string) as Targets

const chainOf = (shape: keyof typeof costlyShapes) => costlyChain(costlyShapes[shape], Date.now())

let next = 0
/** Returns the next of 250 addresses of the attack. */
const address = (): string => `127.66.0.${1 + (next++ % 250)}`

/** Calls `each` for as long as the process runs, `atOnce` times at once. */
function forever(atOnce: number, each: () => Promise<void>): void {
  const loop = async () => {
    for (;;) {
      await each().catch(() => undefined)
      await pause(1)
    }
  }
  for (let count = 0; count < atOnce; count++) void loop()
}

/** Resolves when the socket is closed. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => {
    socket.on('error', () => undefined)
    socket.on('close', () => resolve())
  })

/** Opens TLS connections with a client certificate, `atOnce` at a time. */
function handshakes(credentials: ClientCertificate, atOnce: number): void {
  forever(atOnce, async () => {
    const socket = connectFrom(address(), targets.secure, credentials)
    socket.setTimeout(10_000, () => socket.destroy())
    socket.on('data', () => undefined)
    await closed(socket)
  })
}

/** The share of a core that the crowd takes at most, and how often it is checked, in milliseconds. */
const [crowdShare, shareMs] = [0.5, 20]

/** Opens TLS connections from 200 addresses all the time, together with at most half of one core. */
function crowd(credentials: ClientCertificate | undefined = undefined): void {
  const [began, spent] = [performance.now(), process.cpuUsage()]
  const isOver = () => {
    const { user, system } = process.cpuUsage(spent)
    return (user + system) / 1000 > (performance.now() - began) * crowdShare
  }
  for (let number = 0; number < 200; number++)
    forever(1, async () => {
      while (isOver()) await pause(shareMs)
      const socket = connectFrom(`127.66.0.${1 + number}`, targets.secure, credentials)
      socket.setTimeout(10_000, () => socket.destroy())
      // With TLS 1.3 the server's answer to the certificate comes with its first bytes.
      socket.on('data', () => socket.destroy())
      await closed(socket)
    })
}

/** Writes `count` requests to one HTTP/1.1 connection without waiting for answers, on `connections` connections at a time. */
function pipelined(port: number, connections: number, count: number, requestOf: () => string): void {
  forever(connections, async () => {
    const socket = connectTcp({ host: '127.0.0.1', port, localAddress: address() })
    const over = closed(socket)
    socket.on('data', () => undefined)
    for (let sent = 0; sent < count && !socket.destroyed; sent += 1000) {
      const text = Array.from({ length: Math.min(1000, count - sent) }, requestOf).join('')
      if (!socket.write(text)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), over])
    }
    await Promise.race([over, pause(5000)])
    socket.destroy()
  })
}

const get = (path: string, headers = ''): string => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`

/** Returns the token with a signature that is not the issuer's. */
const forged = (): string => `${targets.token.split('.').slice(0, 2).join('.')}.${randomBytes(256).toString('base64url')}`

/** Serves a body to every request, over TLS with a certificate chain if one is given. */
function serve(port: number, body: Buffer, tls?: ClientCertificate): void {
  const answer = (_: unknown, response: { end(body: Buffer): void }) => response.end(body)
  const server = tls ? createHttps(tls, answer) : createHttp(answer)
  server.on('tlsClientError', () => undefined)
  server.listen(port, '127.0.0.1')
}

/** An application that accepts requests to the agent's probes and never answers. */
function hang(): void {
  createHttp(() => undefined).listen(targets.application, '127.0.0.1')
}

/** An application that answers every probe at once. */
function answers(): void {
  createHttp((_, response) => response.end('ok')).listen(targets.application, '127.0.0.1')
}

const attacks: Readonly<Record<string, () => unknown>> = {
  'costly chains': () => handshakes(chainOf('names'), 3),
  'costly chains, 60 at once': () => handshakes(chainOf('names'), 60),
  'RSA-16384 chains': () => handshakes(chainOf('keys'), 3),
  'key sets behind costly chains': () => serve(targets.keySets, Buffer.from('{"keys":[]}'), chainOf('names')),
  'key sets of deep megabytes': () => serve(targets.keySets, Buffer.from('['.repeat(500_000) + ']'.repeat(500_000))),
  'key sets of 90,000 keys': () => serve(targets.keySets, Buffer.from(`{"keys":[${Array(90_000).fill('{"k":1}').join()}]}`)),
  'pipelined probes (agent)'() {
    answers()
    pipelined(targets.agent, 1, 60_000, () => get('/app-health/app/readyz'))
  },
  'pipelined readiness (agent)': () => pipelined(targets.agent, 1, 100_000, () => get('/healthz/ready')),
  'pipelined pages with forged tokens': () => pipelined(targets.http, 4, 20_000, () => get('/debug/syncz', `Authorization: Bearer ${forged()}\r\n`)),
  'pipelined readiness (discovery)': () => pipelined(targets.http, 1, 100_000, () => get('/ready')),
  'forged tokens (15012)': () =>
    forever(4, async () => {
      const session = connectHttp2('https://localhost', { createConnection: () => connectFrom(address(), targets.secure) })
      session.on('error', () => undefined)
      const streams = Array.from({ length: 100 }, () => {
        const stream = session.request({
          ':method': 'POST',
          ':path': '/mesh.v1.auth.MeshCertificateService/CreateCertificate',
          'content-type': 'application/grpc',
          te: 'trailers',
          authorization: `Bearer ${forged()}`,
        })
        stream.on('error', () => undefined)
        stream.resume()
        stream.end(Buffer.alloc(5))
        return new Promise((resolve) => stream.on('close', resolve))
      })
      await Promise.all(streams)
      session.destroy()
    }),
  'idle connections to a probe (agent)'() {
    hang()
    forever(540, async () => {
      const socket = connectTcp({ host: '127.0.0.1', port: targets.agent, localAddress: address() })
      socket.write(get('/app-health/app/readyz'))
      await closed(socket)
    })
  },
  crowd: () => crowd(),
  'crowd with costly chains': () => crowd(chainOf('names')),
  'unfinished handshakes': () =>
    forever(1000, async () => {
      const socket = connectTcp({ host: '127.0.0.1', port: targets.secure, localAddress: address() })
      socket.write(Buffer.from([0x16, 3, 1, 2, 0, 1]))
      await closed(socket)
    }),
  'idle connections (discovery)': () =>
    forever(1000, async () => closed(connectTcp({ host: '127.0.0.1', port: targets.http, localAddress: address() }))),
  'metrics in chunks of a byte (agent)'() {
    createHttp((_, response) => {
      response.setHeader('content-type', 'text/plain')
      const write = () => {
        for (let count = 0; count < 2000; count++) response.write('a')
        if (!response.destroyed) setTimeout(write, 5)
      }
      write()
    }).listen(targets.application, '127.0.0.1')
    pipelined(targets.agent, 32, 1, () => get('/stats/prometheus'))
  },
  'questions of DNS (agent)'() {
    const sockets = Array.from({ length: 20 }, () => {
      const socket = createSocket('udp4')
      socket.bind(0, address())
      socket.on('error', () => undefined)
      return socket
    })
    forever(1, async () => {
      for (const socket of sockets)
        for (let count = 0; count < 20; count++)
          socket.send(question(`${randomBytes(6).toString('hex')}.bench.svc.cluster.local`), targets.dns, '127.0.0.1')
    })
  },
}

/** Returns a DNS question for the address of a name. */
function question(name: string): Buffer {
  const labels = name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)])
  return Buffer.concat([randomBytes(2), Buffer.from([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...labels, Buffer.from([0, 0, 1, 0, 1])])
}

// The driver has exited.
process.on('disconnect', () => process.exit(0))
attacks[process.argv[2] as string]?.()
process.send?.('begun')
