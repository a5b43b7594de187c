/**
 * The tables of TCP sockets that Linux shows (`/proc/net/tcp`, `/proc/net/tcp6`; proc(5)): which socket is the other end of a connection of
 * this machine, and which sockets listen on certain ports (docs/operation.md, "Debug pages").
 */
import ipaddr from 'ipaddr.js'

/** The addresses and ports of a connection, as a socket of `node:net` has them. */
export interface ConnectionEnds {
  readonly localAddress?: string | undefined
  readonly localPort?: number | undefined
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

/** The socket at the other end of a connection. */
export type PeerSocket =
  /** Its inode, as text. */
  | { readonly inode: string }
  /**
   * `absent`: there is no such socket, or one that no process has open, or the connection is over. `hidden`: the tables show neither the
   * own end of the connection nor the socket that accepted it.
   */
  | 'absent'
  | 'hidden'

/** The state of a listening socket in the tables. */
const listens = '0A'

/** Searches the tables for connections, and for sockets that listen on ports. */
export class SocketSearch {
  /** Inodes of the sockets that listen on one of the ports. */
  readonly listening = new Set<string>()
  readonly #ports: ReadonlySet<number>
  readonly #wanted = new Set<string>()
  /** Ports at which sockets listen. */
  readonly #served = new Set<number>()
  /** Inodes by the ends of a socket: its own first. */
  readonly #found = new Map<string, string>()
  readonly #isLittleEndian: boolean
  #rest = ''

  /** `isLittleEndian`: the byte order of the machine, in which the tables show addresses. */
  constructor(connections: Iterable<ConnectionEnds>, ports: ReadonlySet<number>, isLittleEndian: boolean) {
    this.#ports = ports
    this.#isLittleEndian = isLittleEndian
    for (const ends of connections) for (const key of [...this.#keys(ends), ...this.#keys(turned(ends))]) this.#wanted.add(key)
  }

  /** Takes the next part of a table. */
  read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#take(line)
  }

  /** Ends a table. */
  end(): void {
    this.#rest = ''
  }

  /** The socket at the other end of one of the connections. */
  peerOf(ends: ConnectionEnds): PeerSocket {
    const [own, peer] = [ends, turned(ends)].map((some) => this.#keys(some).flatMap((key) => this.#found.get(key) ?? []))
    if (own?.length === 0) return this.#served.has(ends.localPort ?? 0) ? 'absent' : 'hidden'
    const inode = peer?.find((found) => found !== '0')
    return inode === undefined ? 'absent' : { inode }
  }

  #take(line: string): void {
    // `sl: local_address:port rem_address:port st ... uid timeout inode ...`
    const begin = line.indexOf(': ') + 2
    const between = line.indexOf(' ', begin)
    const end = line.indexOf(' ', between + 1)
    if (begin < 2 || between < 0 || end < 0) return
    const isListening = line.startsWith(listens, end + 1)
    if (isListening) {
      const port = Number.parseInt(line.slice(between - 4, between), 16)
      this.#served.add(port)
      if (this.#ports.has(port)) this.listening.add(inodeOf(line))
      return
    }
    const key = line.slice(begin, end)
    if (this.#wanted.has(key)) this.#found.set(key, inodeOf(line))
  }

  /** The ends as the tables show them: IPv4 connections in the table of IPv4, or as mapped addresses in that of IPv6. */
  #keys({ localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 }: ConnectionEnds): string[] {
    if (!ipaddr.isValid(localAddress) || !ipaddr.isValid(remoteAddress)) return []
    const ends = [
      { address: ipaddr.process(localAddress), port: localPort },
      { address: ipaddr.process(remoteAddress), port: remotePort },
    ]
    const key = (bytesOf: (address: ipaddr.IPv4 | ipaddr.IPv6) => number[]) =>
      ends.map(({ address, port }) => `${this.#hex(bytesOf(address))}:${port.toString(16).toUpperCase().padStart(4, '0')}`).join(' ')
    const mapped = key((address) => (address instanceof ipaddr.IPv4 ? address.toIPv4MappedAddress() : address).toByteArray())
    return ends.every(({ address }) => address instanceof ipaddr.IPv4) ? [key((address) => address.toByteArray()), mapped] : [mapped]
  }

  /** Formats an address as words of 32 bits in the byte order of the machine. */
  #hex(bytes: number[]): string {
    const words = Array.from({ length: bytes.length / 4 }, (_, index) => bytes.slice(4 * index, 4 * index + 4))
    const inOrder = words.flatMap((word) => (this.#isLittleEndian ? word.reverse() : word))
    return inOrder.map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join('')
  }
}

/** The tenth column of a row: the inode. */
const inodeOf = (line: string): string => line.trim().split(/\s+/, 10)[9] ?? '0'

const turned = ({ localAddress, localPort, remoteAddress, remotePort }: ConnectionEnds): ConnectionEnds => ({
  localAddress: remoteAddress,
  localPort: remotePort,
  remoteAddress: localAddress,
  remotePort: localPort,
})
