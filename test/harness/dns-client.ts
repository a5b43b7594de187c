/** A DNS client for tests. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { readDnsResponse } from './dns-messages.ts'
import { until } from './until.ts'

/** A client of a DNS server on 127.0.0.1, over UDP. */
export class DnsClient {
  readonly #socket: UdpSocket = createSocket('udp4').on('message', (message) => this.received.push(message))
  readonly received: Buffer[] = []
  readonly #port: number

  constructor(port: number) {
    this.#port = port
  }

  /** Sends any bytes as a message. */
  send(message: Buffer): void {
    this.#socket.send(message, this.#port, '127.0.0.1')
  }

  /** Sends a query and resolves with the response. */
  async ask(message: Buffer) {
    const before = this.received.length
    this.send(message)
    await until('an answer', () => this.received.length > before)
    return readDnsResponse(this.received[before] as Buffer)
  }

  close(): void {
    this.#socket.close()
  }
}
