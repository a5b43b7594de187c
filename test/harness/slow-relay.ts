/** A relay that takes connections to a server, and passes on what the server answers a byte at a time, or nothing at all. */
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A running relay. */
export class SlowRelay {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #timers = new Set<NodeJS.Timeout>()
  /** The number of connections that were taken. */
  connections = 0

  private constructor(target: URL, byteMs: number | undefined) {
    this.#server = createServer((client) => {
      this.connections++
      this.#keep(client)
      if (byteMs === undefined) return void client.resume()
      const upstream = connect(Number(target.port), target.hostname)
      this.#keep(upstream)
      let answer = Buffer.alloc(0)
      upstream.on('data', (bytes) => {
        answer = Buffer.concat([answer, bytes])
      })
      const timer = setInterval(() => {
        if (answer.length > 0 && !client.destroyed) client.write(answer.subarray(0, 1))
        answer = answer.subarray(1)
      }, byteMs)
      this.#timers.add(timer)
      client.pipe(upstream)
      client.on('close', () => {
        clearInterval(timer)
        upstream.destroy()
      })
    })
  }

  /** Starts a relay to a server. `byteMs`: how long a byte of an answer takes, in milliseconds; undefined: nothing is answered. */
  static async start(target: string, byteMs: number | undefined): Promise<SlowRelay> {
    const relay = new SlowRelay(new URL(target), byteMs)
    await new Promise<void>((resolve) => relay.#server.listen(0, '127.0.0.1', resolve))
    return relay
  }

  /** The address of the relay. */
  get address(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
    for (const socket of this.#sockets) socket.destroy()
    this.#server.close()
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => this.#sockets.delete(socket))
  }
}
