import { expect } from 'chai'
import { type ConnectionEnds, SocketSearch } from '../../../src/identity/socket-table.ts'

const head =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     \n'
const row = (slot: number, ends: string, state: string, inode: number) =>
  `${String(slot).padStart(4)}: ${ends} ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 000000005894560f 100 0 0 10 0                     \n`
const ends = (local: string, localPort: number, remote: string, remotePort: number): ConnectionEnds => ({
  localAddress: local,
  localPort,
  remoteAddress: remote,
  remotePort,
})

/** Searches tables in parts of one length. */
function searched(connections: ConnectionEnds[], tables: string[], { ports = [] as number[], part = 7, isLittleEndian = true } = {}) {
  const search = new SocketSearch(connections, new Set(ports), isLittleEndian)
  for (const table of tables) {
    for (let at = 0; at < table.length; at += part) search.read(table.slice(at, at + part))
    search.end()
  }
  return search
}

describe('tables of sockets', () => {
  const connection = ends('127.0.0.1', 8080, '127.0.0.1', 45_000)
  const own = row(3, '0100007F:1F90 0100007F:AFC8', '01', 71)
  const peer = row(4, '0100007F:AFC8 0100007F:1F90', '01', 72)

  it('show the socket at the other end, whatever the length of their parts', () => {
    for (const part of [1, 7, 150, 4096])
      expect(searched([connection], [head + own + peer], { part }).peerOf(connection)).to.deep.equal({ inode: '72' })
  })

  it('show it in the table of IPv6 too, also of IPv4 connections', () => {
    const mapped = '0000000000000000FFFF00000100007F'
    const ofTwoFamilies = ends('::ffff:127.0.0.1', 8080, '127.0.0.1', 45_000)
    const tables = [head + own, head + row(9, `${mapped}:AFC8 ${mapped}:1F90`, '01', 73)]
    expect(searched([ofTwoFamilies], tables).peerOf(ofTwoFamilies)).to.deep.equal({ inode: '73' })
    const loopback = '00000000000000000000000001000000'
    const ipv6 = ends('::1', 8080, '::1', 45_000)
    const both = head + row(1, `${loopback}:1F90 ${loopback}:AFC8`, '01', 1) + row(2, `${loopback}:AFC8 ${loopback}:1F90`, '08', 2)
    expect(searched([ipv6], ['', both]).peerOf(ipv6)).to.deep.equal({ inode: '2' })
  })

  it('say that there is none: no row, another port, or a socket that nobody has open', () => {
    const other = row(5, '0100007F:AFC9 0100007F:1F90', '01', 74)
    expect(searched([connection], [own]).peerOf(connection)).to.equal('absent')
    expect(searched([connection], [own + other]).peerOf(connection)).to.equal('absent')
    expect(searched([connection], [own + row(6, '0100007F:AFC8 0100007F:1F90', '06', 0)]).peerOf(connection)).to.equal('absent')
  })

  it('hide a connection if they show neither its own end nor the socket that accepted it', () => {
    expect(searched([connection], [head]).peerOf(connection)).to.equal('hidden')
    const accepting = row(0, '00000000:1F90 00000000:0000', '0A', 70)
    expect(searched([connection], [head + accepting]).peerOf(connection), 'a connection that was reset').to.equal('absent')
    expect(searched([connection], [head + accepting + peer]).peerOf(connection), 'a new one of the same ends').to.equal('absent')
    expect(searched([{}], [head]).peerOf({}), 'a unix socket').to.equal('hidden')
  })

  it('show which sockets listen on ports, at any address', () => {
    const listening = [
      row(0, '0B00007F:3A98 00000000:0000', '0A', 81),
      row(1, '0100007F:3A99 00000000:0000', '0A', 82),
      row(2, '0100007F:3A98 0100007F:AFC8', '01', 83),
    ]
    const ipv6 = row(0, `${'0'.repeat(32)}:3AAC ${'0'.repeat(32)}:0000`, '0A', 84)
    expect([...searched([], [head + listening.join(''), head + ipv6], { ports: [15_000, 15_020] }).listening]).to.deep.equal(['81', '84'])
  })

  it('have addresses in the byte order of the machine', () => {
    const bigEndian = row(3, '7F000001:1F90 7F000001:AFC8', '01', 71) + row(4, '7F000001:AFC8 7F000001:1F90', '01', 72)
    expect(searched([connection], [bigEndian], { isLittleEndian: false }).peerOf(connection)).to.deep.equal({ inode: '72' })
  })

  it('are read whatever they contain', () => {
    for (const text of ['', '\n\n', ': \n', 'a: b\n', 'a: b c\n', '9: 0100007F:AFC8 0100007F:1F90 0A\n', '\0'.repeat(100), own.slice(0, 40)])
      expect(searched([connection], [text], { ports: [0] }).peerOf(connection)).to.equal('hidden')
  })
})
