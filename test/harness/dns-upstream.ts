/** A DNS server for tests, on UDP and TCP with the same port, whose responses the test decides. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'

/** A received query and the function that answers it. */
export interface UpstreamQuery {
  readonly message: Buffer
  readonly isStream: boolean
  /** The sender's port. */
  readonly from: number
  /** Sends a response. Over UDP, `elsewhere` sends it from another port. */
  reply(response: Buffer, elsewhere?: boolean): void
  /** The connection of a query over TCP. */
  readonly socket?: Socket
}

/** The server. */
export class DnsUpstream {
  readonly queries: UpstreamQuery[] = []
  /** Called with each query. */
  onQuery: (query: UpstreamQuery) => void = () => {}
  readonly #udp: UdpSocket
  readonly #other: UdpSocket
  readonly #tcp: Server

  private constructor(udp: UdpSocket, other: UdpSocket, tcp: Server) {
    this.#udp = udp
    this.#other = other
    this.#tcp = tcp
    udp.on('message', (message, { port, address }) =>
      this.#take({
        message,
        isStream: false,
        from: port,
        reply: (response, elsewhere) => (elsewhere ? this.#other : this.#udp).send(response, port, address),
      }),
    )
    tcp.on('connection', (socket) => {
      socket.on('error', () => undefined)
      socket.on('data', (bytes: Buffer) =>
        this.#take({
          message: bytes.subarray(2),
          isStream: true,
          from: socket.remotePort ?? 0,
          socket,
          reply: (response) => socket.write(Buffer.concat([Buffer.of(response.length >> 8, response.length & 255), response])),
        }),
      )
    })
  }

  /** Starts a server on 127.0.0.1. */
  static async open(port = 0): Promise<DnsUpstream> {
    const bound = (of: number) =>
      new Promise<UdpSocket>((resolve, reject) => {
        const socket = createSocket('udp4')
        socket.once('error', reject)
        socket.bind(of, '127.0.0.1', () => resolve(socket))
      })
    const both = async (): Promise<[UdpSocket, Server]> => {
      const udp = await bound(port)
      const tcp = createServer()
      try {
        await new Promise<void>((resolve, reject) => tcp.once('error', reject).listen(udp.address().port, '127.0.0.1', resolve))
        return [udp, tcp]
      } catch (error) {
        udp.close()
        throw error
      }
    }
    // A port that is free for UDP may be in use for TCP, on a busy machine several times in a row.
    const some = (attempts: number): Promise<[UdpSocket, Server]> =>
      both().catch((error) => (port === 0 && attempts > 1 ? some(attempts - 1) : Promise.reject(error)))
    const [udp, tcp] = await some(10)
    return new DnsUpstream(udp, await bound(0), tcp)
  }

  get port(): number {
    return this.#udp.address().port
  }

  close(): void {
    this.#udp.close()
    this.#other.close()
    this.#tcp.close()
  }

  #take(query: UpstreamQuery): void {
    this.queries.push(query)
    this.onQuery(query)
  }
}

/** Encodes a response with only the question and a response code. */
export function emptyResponse(message: Buffer, code = 0): Buffer {
  const response = Buffer.from(message)
  response.writeUInt16BE(0x8180 | code, 2)
  return response
}
